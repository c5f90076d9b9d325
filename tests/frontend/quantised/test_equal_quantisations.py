"""A value that is quantised for each of its readers is quantised once, and its layer stays integer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
from onnx import TensorProto, helper

from passfit.frontend.canonicalise import canonicalize
from passfit.frontend.quantised.equal_quantisations import merge_equal_quantisations

from ...models import model_of, run

node = helper.make_node
RNG = np.random.default_rng(4)


def _model(second: str) -> onnx.ModelProto:
    """Build a product whose result two readers quantise, one by the scale `second`."""
    constants = {
        "xs": np.float32(0.02), "ws": np.float32(0.01), "ys": np.float32(0.5), "other": np.float32(0.6), "z": np.int8(0),
        "w": RNG.integers(-127, 128, (16, 8)).astype(np.int8),
    }  # fmt: skip
    nodes = [
        node("DequantizeLinear", ["x", "xs", "z"], ["xf"]), node("DequantizeLinear", ["w", "ws", "z"], ["wf"]),
        node("MatMul", ["xf", "wf"], ["t"]), node("QuantizeLinear", ["t", "ys", "z"], ["a"]), node("QuantizeLinear", ["t", second, "z"], ["b"]),
        node("DequantizeLinear", ["a", "ys", "z"], ["af"]), node("DequantizeLinear", ["b", second, "z"], ["bf"]),
        node("Sigmoid", ["af"], ["s"]), node("Mul", ["s", "bf"], ["y"]),
    ]  # fmt: skip
    return model_of(nodes, {"x": (3, 16)}, ["y"], constants, dtypes={"x": TensorProto.INT8})


def test_a_layer_quantised_for_each_reader_stays_integer() -> None:
    model = _model("ys")
    imported = canonicalize(model)
    operators = Counter(each.op_type for each in imported.graph.node)
    assert operators["QLinearMatMul"] == 1 and not operators["MatMul"] and not operators["QuantizeLinear"]
    x = RNG.integers(-128, 128, (3, 16)).astype(np.int8)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], atol=0.6)


def test_other_quantisations_of_a_value_stay() -> None:
    model = _model("other")
    assert merge_equal_quantisations(model) is model
