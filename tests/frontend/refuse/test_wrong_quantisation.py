"""Scales, zero points and sums that mean nothing are refused, with their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of, save

node = helper.make_node
W = np.ones((4, 3, 1, 1), np.int8)
GOOD: dict[str, Any] = {
    "s": np.float32(0.1), "z": np.int8(0), "w": W, "ws": np.full(4, 0.1, np.float32), "wz": np.zeros(4, np.int8),
}  # fmt: skip


def _qdq(constants: dict[str, Any], **attributes: Any) -> onnx.ModelProto:
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["xf"], name="read"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], name="weights", **{"axis": 0} | attributes),
        node("Conv", ["xf", "wf"], ["t"], name="conv"),
        node("QuantizeLinear", ["t", "s", "z"], ["y"], name="write"),
    ]
    return _model(nodes, constants)


def _qlinear(constants: dict[str, Any]) -> onnx.ModelProto:
    return _model([node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "s", "z"], ["y"], name="layer")], constants)


def _model(nodes: list[onnx.NodeProto], constants: dict[str, Any]) -> onnx.ModelProto:
    given = GOOD | constants
    tensors = [
        v if isinstance(v, onnx.TensorProto) else onnx.numpy_helper.from_array(np.asarray(v), k)
        for k, v in given.items()
    ]
    channels = next(tensor for tensor in tensors if tensor.name == "w").dims[1]
    kinds = {"x": TensorProto.INT8, "y": TensorProto.INT8}
    return model_of(nodes, {"x": [1, channels, 2, 2]}, ["y"], tensors, dtypes=kinds)


def _raw(value: int) -> onnx.TensorProto:
    return onnx.TensorProto(name="z", data_type=TensorProto.INT8, int32_data=[value])


NAN, INF = float("nan"), float("inf")
WRONG: dict[str, tuple[onnx.ModelProto, str]] = {
    **{f"scale {v}": (_qdq({"s": np.float32(v)}), rf"'s' of the DequantizeLinear node 'read' is {v:g}") for v in (0.0, -0.5, NAN, INF)},
    "one scale of a channel": (_qdq({"ws": np.float32([1, 1, 0, 1])}), r"'ws'\[2\] of the DequantizeLinear node 'weights' is 0"),
    "scale of an integer layer": (_qlinear({"s": np.float32(-1)}), "'s' of the QLinearConv node 'layer' is -1"),
    "zero point of another dtype": (_qdq({"z": np.uint8(0)}), "'z' of the DequantizeLinear node 'read' is uint8.* int8"),
    "zero point of weights": (_qlinear({"wz": np.zeros(4, np.uint8)}), "'wz' of the QLinearConv node 'layer' is uint8"),
    "zero point outside its dtype": (_qdq({"z": _raw(300)}), "'z' .* holds 300, outside of -128 to 127"),
    "zero point of int32": (_qdq({"w": W.astype(np.int32), "wz": np.ones(4, np.int32)}), "'wz' .* is 1; of an int32"),
    "axis of other channels": (_qdq({}, axis=1), r"'ws' .* shape \[4\], which does not fit dimension 1 of 'w', shape \[4, 3, 1, 1\]"),
    "axis outside": (_qdq({}, axis=7), "does not fit dimension 7 of 'w'"),
    "fewer zero points than scales": (_qdq({"wz": np.int8([0, 0])}), "4 scales .* 2 zero points"),
    "scales of other channels": (_qlinear({"ws": np.ones(3, np.float32), "wz": np.zeros(3, np.int8)}), "'ws' .* shape .3."),
    "sums beyond int32": (
        _qlinear({"w": np.full((1, 70_000, 1, 1), -128, np.int8), "ws": np.float32(1), "wz": np.int8(127), "z": np.int8(0)}),
        "QLinearConv node 'layer' may sum up to 2284800000",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_quantisation_is_refused_by_name(tmp_path: Path, name: str) -> None:
    model, said = WRONG[name]
    with pytest.raises(ModelError, match=said) as caught:
        import_model(save(model, tmp_path))
    assert caught.value.hint


@pytest.mark.parametrize(
    "model",
    [
        _qdq({}),
        _qlinear({}),
        _qdq({"wz": np.int8([0, 0, 0, 0])}),
        _qlinear({"ws": np.float32([0.1]), "wz": np.int8([0])}),
    ],
)
def test_a_right_quantisation_is_not(tmp_path: Path, model: onnx.ModelProto) -> None:
    import_model(save(model, tmp_path))


def test_a_zero_scale_computed_from_constants_is_refused(tmp_path: Path) -> None:
    model = _qdq({"half": np.float32(0.5), "none": np.float32(0)})
    model.graph.node.insert(0, node("Mul", ["half", "none"], ["made"], name="scale"))
    model.graph.node[1].input[1] = "made"
    with pytest.raises(ModelError, match="DequantizeLinear node 'read' is 0"):
        import_model(save(model, tmp_path))
