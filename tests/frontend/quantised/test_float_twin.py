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
    """Return the operators on data: without those that dequantise weights."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return {node.op_type for node in model.graph.node if not set(filter(None, node.input)) <= constants}


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("signs", SIGNS)
def test_the_twin_computes_in_floats_what_the_model_computes_in_integers(tmp_path: Path, form: str, signs: str) -> None:
    model = import_model(quantised(tmp_path, form, signs))
    twin = canonicalize(float_twin(model))
    assert not operators(twin) & INTEGERS
    np.testing.assert_allclose(run(twin, X)[0], run(network(), X)[0], atol=0.06)
    weights = {node.input[0] for node in twin.graph.node if node.op_type == "DequantizeLinear"}
    assert not any(weights & set(node.input) for node in twin.graph.node if node.op_type != "DequantizeLinear")
    others = [each for each in twin.graph.initializer if each.name not in weights]
    large = [numpy_helper.to_array(each) for each in others if len(each.dims) > 1]
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


def test_a_constant_that_moves_too_is_both_floats_and_weights() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("Concat", ["q", "w"], ["both"], axis=0),
        helper.make_node("DequantizeLinear", ["both", "s", "z"], ["y"]),
        helper.make_node("QLinearMatMul", ["q", "s", "z", "w", "ws", "z", "s", "z"], ["p"]), helper.make_node("DequantizeLinear", ["p", "s", "z"], ["v"]),
    ]  # fmt: skip
    random = np.random.default_rng(0)
    w = random.integers(-128, 128, (6, 6)).astype(np.int8)
    constants = {"w": w, "s": np.float32(0.25), "ws": np.float32(0.01), "z": np.int8(0)}
    twin = canonicalize(
        float_twin(canonicalize(model_of(nodes, {"x": [4, 6]}, {"y": [10, 6], "v": [4, 6]}, constants)))
    )
    x = random.integers(-8, 8, (4, 6)).astype(np.float32)
    y, v = run(twin, {"x": x})
    np.testing.assert_allclose(y, np.concatenate([x, w * np.float32(0.25)]), rtol=1e-5)
    np.testing.assert_allclose(v, np.clip(x @ w * np.float32(0.01), -32, 31.75), rtol=1e-4, atol=1e-4)


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


def test_the_file_of_a_twin_is_as_large_as_the_models_own() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]), helper.make_node("QLinearMatMul", ["q", "s", "z", "w", "s", "z", "s", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["y"]),
    ]  # fmt: skip
    w = np.random.default_rng(0).integers(-128, 128, (256, 256)).astype(np.int8)
    constants = {"w": w, "s": np.float32(0.25), "z": np.int8(0)}
    model = canonicalize(model_of(nodes, {"x": [1, 256]}, {"y": [1, 256]}, constants))
    assert canonicalize(float_twin(model)).ByteSize() < 1.1 * model.ByteSize()
