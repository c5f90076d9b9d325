"""Layers that integers cannot compute exactly, and weights quantised alone: they keep their DequantizeLinear."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.frontend.canonicalise import canonicalize

from ...models import model_of, run

node = helper.make_node
RNG = np.random.default_rng(11)
W = RNG.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
CONSTANTS: dict[str, Any] = {
    "xs": np.float32(0.02), "xz": np.int8(3), "ws": np.float32(0.01), "wz": np.int8(0), "w": W,
    "ys": np.float32(0.4), "yz": np.int8(-5),
}  # fmt: skip
KINDS = {"x": TensorProto.INT8, "y": TensorProto.INT8}


def _layer(constants: dict[str, Any], *middle: onnx.NodeProto, bias: bool = False, outputs: tuple[str, ...] = ("y",)):
    last = middle[-1].output[0] if middle else "t"
    axis = {"axis": 0} if np.ndim(constants.get("ws", CONSTANTS["ws"])) else {}
    nodes = [
        node("DequantizeLinear", ["x", "xs", "xz"], ["xf"], name="dx"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], name="dw", **axis),
        node("Conv", ["xf", "wf", *(["b"] if bias else [])], ["t"], name="conv"),
        *middle,
        node("QuantizeLinear", [last, "ys", "yz"], ["y"], name="q"),
    ]
    channels = (constants.get("w", W)).shape[1]
    return model_of(nodes, {"x": [1, channels, 6, 6]}, outputs, CONSTANTS | constants, dtypes=KINDS, opset=21)


FLOAT_CASES = {
    "a bias between two steps": _layer({"b": np.float32([1e-4, 0, 1, 2]), "ys": np.float32(1e-3)}, bias=True),
    "a bias beyond int32": _layer({"b": np.full(4, 2e6, np.float32)}, bias=True),
    "sums that another node reads": _layer({}, node("Relu", ["t"], ["r"], name="relu"), node("Exp", ["r"], ["e"], name="exp"),
        node("Add", ["r", "e"], ["s"], name="add")),
    "a sum beyond int32": _layer({"w": np.full((1, 70_000, 1, 1), -128, np.int8), "wz": np.int8(127)}),
    "numbers of 16 bits": _layer({"ys": np.float32(1e-3), "yz": np.int16(0)}),
}  # fmt: skip
FLOAT_CASES["numbers of 16 bits"].graph.output[0].type.tensor_type.elem_type = TensorProto.INT16
FLOAT_CASES["float outputs inside"] = _layer({}, outputs=("y", "t"))
FLOAT_CASES["float outputs inside"].graph.output[1].type.tensor_type.elem_type = TensorProto.FLOAT


@pytest.mark.parametrize("name", FLOAT_CASES)
def test_a_layer_integers_cannot_compute_stays_as_it_is(name: str) -> None:
    model = FLOAT_CASES[name]
    imported = canonicalize(model)
    operators = Counter(each.op_type for each in imported.graph.node)
    assert operators["Conv"] == 1 and operators["QLinearConv"] == 0, operators
    x = RNG.integers(-128, 128, [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]).astype(np.int8)
    for one, other in zip(run(imported, {"x": x}), run(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(one, other)
    sizes = {each.name: numpy_helper.to_array(each).nbytes for each in imported.graph.initializer}
    assert W.nbytes in sizes.values() or max(sizes.values()) == 70_000


def test_a_float_bias_is_rounded_where_that_moves_results_by_a_small_part_of_a_unit() -> None:
    model = _layer({"b": np.float32([1e-4, 0, 1.0001, 2])}, bias=True)
    imported = canonicalize(model)
    assert [each.op_type for each in imported.graph.node] == ["QLinearConv"]
    x = RNG.integers(-128, 128, (1, 3, 6, 6)).astype(np.int8)
    (found,), (expected,) = run(imported, {"x": x}), run(model, {"x": x})
    apart = np.abs(found.astype(int) - expected.astype(int))
    assert apart.max() <= 1 and apart.mean() < 0.05


def test_a_quantised_weight_read_as_a_constant_of_floats_is_quantised_on_import() -> None:
    """Quantisation-aware training leaves the float weights before their QuantizeLinear."""
    constants = {key: value for key, value in CONSTANTS.items() if key != "w"} | {
        "w0": W.astype(np.float32) * np.float32(0.01)
    }
    model = _layer({})
    del model.graph.initializer[:]
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    model.graph.node.insert(0, node("QuantizeLinear", ["w0", "ws", "wz"], ["w"], name="qw"))
    imported = canonicalize(model)
    assert [each.op_type for each in imported.graph.node] == ["QLinearConv"]
    stored = {numpy_helper.to_array(each).tobytes() for each in imported.graph.initializer}
    assert W.tobytes() in stored


def _weights_only(kind: str) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return a model whose weights alone are quantised, and its input."""
    w = RNG.integers(-7, 8, (24, 16)).astype(np.int8)
    constants: dict[str, Any] = {"ws": (RNG.random(16) / 50).astype(np.float32), "wz": np.zeros(16, np.int8), "w": w}
    attributes: dict[str, Any] = {"axis": 1}
    if kind == "int4":
        constants |= {"w": helper.make_tensor("w", TensorProto.INT4, w.shape, w.ravel().tolist())}
        constants |= {"wz": helper.make_tensor("wz", TensorProto.INT4, [16], [0] * 16)}
    if kind == "blocks":
        constants |= {
            "ws": (RNG.random((3, 16)) / 50).astype(np.float32),
            "wz": RNG.integers(-3, 3, (3, 16)).astype(np.int8),
        }
        attributes = {"axis": 0, "block_size": 8}
    tensors = [
        each if isinstance(each, onnx.TensorProto) else numpy_helper.from_array(each, name)
        for name, each in constants.items()
    ]
    nodes = [node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], name="dw", **attributes)]
    if kind == "rows of a table":
        nodes.append(node("Gather", ["wf", "x"], ["y"], name="gather"))
        return model_of(nodes, {"x": [5]}, ["y"], tensors, dtypes={"x": TensorProto.INT64}), np.asarray(
            [3, 1, 4, 1, 23]
        )
    nodes.append(node("MatMul", ["x", "wf"], ["y"], name="product"))
    return model_of(nodes, {"x": [5, 24]}, ["y"], tensors, opset=21), RNG.standard_normal((5, 24)).astype(np.float32)


@pytest.mark.parametrize("kind", ["int8", "int4", "blocks", "rows of a table"])
def test_weights_quantised_alone_are_never_folded_to_floats(kind: str) -> None:
    model, x = _weights_only(kind)
    model.ir_version = 10
    imported = canonicalize(model)
    assert "DequantizeLinear" in {each.op_type for each in imported.graph.node}
    largest = max(imported.graph.initializer, key=lambda each: np.prod(each.dims))
    assert largest.data_type in (TensorProto.INT8, TensorProto.INT4) and np.prod(largest.dims) == 24 * 16
    np.testing.assert_array_equal(run(imported, {"x": x})[0], run(model, {"x": x})[0])
