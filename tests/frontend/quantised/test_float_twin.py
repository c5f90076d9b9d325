"""The float twin of a quantised model has its layers on floats, and its results without rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.frontend.canonicalise import canonicalize, import_model
from passfit.frontend.quantised.float_twin import float_twin, has_numbers, integer_share, multiplications

from ...models import model_of, run
from .networks import SIGNS, network, quantised

INTEGERS = {
    "DequantizeLinear",
    "DynamicQuantizeLinear",
    "MatMulInteger",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
}
X = {"x": np.random.default_rng(3).standard_normal((1, 3, 8, 8)).astype(np.float32)}


def operators(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("signs", SIGNS)
def test_the_twin_computes_in_floats_what_the_model_computes_in_integers(tmp_path: Path, form: str, signs: str) -> None:
    model = import_model(quantised(tmp_path, form, signs))
    twin = canonicalize(float_twin(model))
    assert not operators(twin) & INTEGERS
    np.testing.assert_allclose(run(twin, X)[0], run(network(), X)[0], atol=0.06)
    large = [numpy_helper.to_array(each) for each in twin.graph.initializer if len(each.dims) > 1]
    assert all(each.dtype == np.float32 for each in large if each.dtype.kind == "f" or each.itemsize == 1)
    assert integer_share(model) == 1 and integer_share(twin) == 0
    assert multiplications(model) == multiplications(twin)


def test_dynamically_quantised_products_have_a_twin_too() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]), helper.make_node("MatMulInteger", ["q", "w", "z"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT), helper.make_node("Mul", ["s", "ws"], ["step"]),
        helper.make_node("Mul", ["floats", "step"], ["y"]),
    ]  # fmt: skip
    random = np.random.default_rng(0)
    w = random.integers(-128, 128, (16, 5)).astype(np.int8)
    model = canonicalize(model_of(nodes, {"x": [4, 16]}, {"y": [4, 5]}, {"w": w, "ws": np.float32(0.01)}))
    twin = canonicalize(float_twin(model))
    x = random.standard_normal((4, 16)).astype(np.float32)
    assert not operators(twin) & INTEGERS and integer_share(model) == 1
    np.testing.assert_allclose(run(twin, {"x": x})[0], x @ w * np.float32(0.01), rtol=1e-4, atol=1e-4)


def test_the_share_is_that_of_the_multiplications() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "m"], ["f"]), helper.make_node("QuantizeLinear", ["f", "s", "z"], ["q"]),
        helper.make_node("QLinearMatMul", ["q", "s", "z", "w", "s", "z", "s", "z"], ["y"]),
    ]  # fmt: skip
    constants = {"m": np.ones((8, 6), np.float32), "w": np.ones((6, 4), np.int8), "s": np.float32(0.1), "z": np.int8(0)}
    model = canonicalize(model_of(nodes, {"x": [2, 8]}, {"y": [2, 4]}, constants, dtypes={"y": TensorProto.INT8}))
    assert integer_share(model) == 2 * 6 * 4 / (2 * 6 * 4 + 2 * 8 * 6)


def test_multiplications_are_those_of_the_operators_formulas() -> None:
    random = np.random.default_rng(0)
    constants = {
        "w": random.random((1, 12, 5), np.float32), "r": random.random((1, 12, 3), np.float32), "t": random.random((4, 2, 3, 3), np.float32),
        "shape": np.asarray([1, 4, 2, 3]),
    }  # fmt: skip
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=3), helper.make_node("Concat", ["y", "y"], ["two"], axis=0),
        helper.make_node("Reshape", ["two", "shape"], ["image"]), helper.make_node("ConvTranspose", ["image", "t"], ["z"]),
    ]  # fmt: skip
    model = canonicalize(model_of(nodes, {"x": [4, 1, 5]}, ["z"], constants))
    assert multiplications(model) == 4 * 12 * (5 + 3) + 4 * 2 * 3 * 2 * 3 * 3


def test_a_float_model_has_no_numbers() -> None:
    assert not has_numbers(canonicalize(network()))
