"""Change bodies of loops as models: verification gives their integer layers equal signs, and moves what they quantise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from passfit.frontend.canonical.control_flow import long_loops
from passfit.frontend.canonical.control_flow.loop_bodies import change_bodies, loop_bodies
from passfit.frontend.canonicalise import import_model
from passfit.verify.equal_signs import equalise_signs
from passfit.verify.integers.exact_integers import has_exact_integers, is_quantised
from passfit.verify.integers.perturbed_rounding import add_noise

from ....models import model_of, run, save
from .test_unroll_loops import FLOAT, ROWS, body, node


@pytest.fixture
def quantised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> onnx.ModelProto:
    """A kept Scan of u8 × s8 products of integers, quantised in each iteration; weights small enough not to saturate."""
    monkeypatch.setattr(long_loops, "LONG", 1)
    weights = np.random.default_rng(2).integers(-9, 9, (3, 3)).astype(np.int8)
    nodes = [
        node("DynamicQuantizeLinear", "h", "q scale zero"), node("MatMulInteger", "q w zero", "p"), node("Cast", "p", "f", to=TensorProto.FLOAT),
        node("Mul", "f scale", "g"), node("Mul", "g small", "s"), node("Add", "s xi", "h2"), node("Neg", "h2", "row"),
    ]  # fmt: skip
    step = body(
        nodes, {"h": (FLOAT, [2, 3]), "xi": (FLOAT, [2, 3])}, {"h2": (FLOAT, [2, 3]), "row": (FLOAT, [2, 3])},
        w=weights, small=np.asarray(0.01, np.float32),
    )  # fmt: skip
    scan = node("Scan", "h0 x", "h y", body=step, num_scan_inputs=1)
    return import_model(save(model_of([scan], {"h0": [2, 3], "x": [5, 2, 3]}, ["h", "y"], {}, opset=17), tmp_path))


INPUTS = {"h0": ROWS[0], "x": ROWS}


def test_a_quantised_body_makes_a_quantised_model_without_exact_integers(quantised: onnx.ModelProto) -> None:
    assert is_quantised(quantised) and not has_exact_integers(quantised)


def test_integer_layers_of_bodies_get_operands_of_equal_signs(quantised: onnx.ModelProto) -> None:
    changed = equalise_signs(quantised)
    (inner,) = loop_bodies(changed.graph)
    (product,) = (each for each in inner.node if each.op_type == "MatMulInteger")
    weights = next(each for each in inner.initializer if each.name == product.input[1])
    assert weights.data_type == TensorProto.UINT8
    for got, wanted in zip(run(changed, INPUTS), run(quantised, INPUTS), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_what_a_body_quantises_gets_noise(quantised: onnx.ModelProto) -> None:
    (inner,) = loop_bodies(add_noise(quantised, 0).graph)
    (quantises,) = (each for each in inner.node if each.op_type == "DynamicQuantizeLinear")
    assert quantises.input[0] not in [each.name for each in inner.input]


def test_a_model_without_loops_stays_the_same_object() -> None:
    model = model_of([node("Neg", "x", "y")], {"x": [2]}, ["y"], {})
    assert change_bodies(model, lambda _: pytest.fail("there is no body")) is model
