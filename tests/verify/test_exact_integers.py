"""Quantised models are compared with a reference that is exact on every machine, and by equality where that is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from onnx import TensorProto, helper

from passfit.errors import NumericError
from passfit.frontend.canonicalise import canonicalize
from passfit.verify.cases import choose_cases
from passfit.verify.compare import compare
from passfit.verify.equal_signs import equalise_signs
from passfit.verify.integers.exact_integers import has_exact_integers
from passfit.verify.reference import Reference

from ..frontend.quantised.layers import LayerModel, layers
from ..models import model_of

node = helper.make_node
KINDS = {"x": TensorProto.INT8, "y": TensorProto.INT8}


@settings(deadline=None, max_examples=40)
@given(layer=layers(("uint8", "int8", "uint8")) | layers(("int8", "uint8", "int8")) | layers(("uint8", "int8", "int8")))
def test_the_reference_is_exact_for_mixed_signs(layer: LayerModel) -> None:
    found = Reference(canonicalize(layer.model()))({"x": layer.x})["y"]
    np.testing.assert_array_equal(found, layer.expected)


@pytest.mark.parametrize("given_zeros", [True, False])
@pytest.mark.parametrize(
    ("x_kind", "w_kind"), [("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8")]
)
@pytest.mark.parametrize("op", ["MatMulInteger", "ConvInteger"])
def test_the_reference_of_plain_sums_is_exact(op: str, x_kind: str, w_kind: str, given_zeros: bool) -> None:
    random = np.random.default_rng(2)
    x, w = (
        random.integers(*[int(v) for v in (np.iinfo(k).min, np.iinfo(k).max)], s).astype(k)
        for k, s in ((x_kind, (5, 40)), (w_kind, (40, 6)))
    )
    zeros = {"xz": np.asarray(7, x_kind), "wz": np.asarray(9, w_kind)} if given_zeros else {}
    shift = (7, 9) if given_zeros else (0, 0)
    expected = (x.astype(np.int64) - shift[0]) @ (w.astype(np.int64) - shift[1])
    if op == "ConvInteger":
        x, w, expected = x[:, :, None], np.ascontiguousarray(w.T)[:, :, None], expected[:, :, None]
    kinds = {"x": helper.np_dtype_to_tensor_dtype(x.dtype), "y": TensorProto.INT32}
    model = model_of(
        [node(op, ["x", "w", *zeros], ["y"], name="sums")], {"x": x.shape}, ["y"], {"w": w, **zeros}, dtypes=kinds
    )
    np.testing.assert_array_equal(Reference(model)({"x": x})["y"], expected)


def _between(*nodes) -> object:
    """Return a model of float nodes from `f` to `t` between two quantisations."""
    ends = (
        node("DequantizeLinear", ["x", "s"], ["f"], name="d"),
        node("QuantizeLinear", ["t", "s", "z"], ["y"], name="q"),
    )
    constants = {"s": np.float32(0.05), "z": np.int8(0)}
    return canonicalize(model_of([ends[0], *nodes, ends[1]], {"x": [1, 4, 4, 4]}, ["y"], constants, dtypes=KINDS))


ADD, SOFTMAX = node("Add", ["f", "f"], ["t"], name="a"), node("Softmax", ["f"], ["t"], name="a")


@pytest.mark.parametrize(("between", "exact"), [(ADD, True), (SOFTMAX, False)])
def test_numbers_are_exact_unless_an_approximation_is_rounded(between, exact: bool) -> None:
    model = _between(between)
    assert has_exact_integers(model) == exact
    (case,) = choose_cases(model, 0, 1, 1e-4)
    off = {"y": case.expected["y"].copy()}
    off["y"].flat[5] += 1 if off["y"].flat[5] < 127 else -1
    compare([dict(case.expected)], [case], 1e-4)
    if exact:
        with pytest.raises(NumericError, match="exact equality"):
            compare([off], [case], 1e-4)
    else:
        compare([off], [case], 1e-4)
        off["y"].flat[5] = case.expected["y"].flat[5] + (2 if case.expected["y"].flat[5] < 100 else -2)
        with pytest.raises(NumericError, match="more than 1"):
            compare([off], [case], 1e-4)


def test_floats_after_the_last_quantisation_do_not_count() -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"), node("DequantizeLinear", ["q", "s", "z"], ["f"], name="d"),
        node("Softmax", ["f"], ["y"], name="softmax"),
    ]  # fmt: skip
    model = canonicalize(model_of(nodes, {"x": [3, 4]}, ["y"], {"s": np.float32(0.05), "z": np.int8(0)}))
    assert has_exact_integers(model)


def test_a_float_model_is_not_quantised() -> None:
    model = model_of([node("Relu", ["x"], ["y"], name="r")], {"x": [3]}, ["y"])
    assert not has_exact_integers(model)
    assert equalise_signs(model) is model
