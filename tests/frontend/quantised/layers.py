"""Random quantised layers in floats, between DequantizeLinear and QuantizeLinear, with their exact results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from ...models import model_of
from .arithmetic import Array, convolved, requantised, step_of, transposed

ONNX_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}
SIGNS = [(x, w, y) for x in ONNX_TYPES for w in ONNX_TYPES for y in ONNX_TYPES]


@dataclass
class LayerModel:
    """A model of one layer from integers `x` to integers `y`, its input, and the output of the exact arithmetic."""

    kind: str
    x: Array
    expected: Array
    nodes: list[onnx.NodeProto]
    constants: dict[str, Array]
    signs: tuple[str, str, str]
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def phases(self) -> int:
        """Number of filters of a channel."""
        return math.prod(KINDS[self.kind][3]["strides"]) if self.kind.startswith("ConvTranspose") else 1

    def model(self, *, opset: int = 17) -> onnx.ModelProto:
        dtypes = {"x": ONNX_TYPES[self.x.dtype.name], "y": ONNX_TYPES[self.expected.dtype.name]}
        return model_of(self.nodes, {"x": self.x.shape}, ["y"], self.constants, opset=opset, dtypes=dtypes)


#: kind: shapes of x and w, axis of the channels of w, attributes
KINDS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, dict[str, Any]]] = {
    "Conv 1-d": ((2, 3, 9), (4, 3, 3), 0, {"pads": [1, 1], "strides": [2]}),
    "Conv": ((1, 3, 7, 6), (5, 3, 3, 3), 0, {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "Conv 1x1": ((2, 5, 4, 4), (7, 5, 1, 1), 0, {"pads": [0] * 4, "strides": [1, 1]}),
    "Conv grouped": ((1, 4, 6, 6), (6, 2, 3, 3), 0, {"group": 2, "pads": [1] * 4, "strides": [1, 1]}),
    "Conv depthwise": ((1, 4, 6, 6), (4, 1, 3, 3), 0, {"group": 4, "pads": [2] * 4, "strides": [1, 1]}),
    "ConvTranspose": ((2, 3, 4, 5), (3, 4, 2, 2), 1, {"strides": [2, 2]}),
    "ConvTranspose 1-d": ((1, 3, 6), (3, 4, 1), 1, {"strides": [2]}),
    "ConvTranspose 4x4": ((1, 3, 4, 5), (3, 4, 4, 4), 1, {"pads": [1] * 4, "strides": [2, 2]}),
    "ConvTranspose extended": (
        (1, 3, 5, 4),
        (3, 2, 3, 3),
        1,
        {"pads": [1] * 4, "output_padding": [1, 1], "strides": [2, 2]},
    ),
    "ConvTranspose grouped": ((1, 4, 3, 4), (4, 3, 5, 5), 1, {"group": 2, "pads": [1] * 4, "strides": [3, 3]}),
    "ConvTranspose of one step": ((1, 2, 6), (2, 3, 3), 1, {"pads": [2, 2], "strides": [1]}),
    "Gemm": ((3, 11), (11, 5), 1, {}),
    "Gemm transB": ((3, 11), (5, 11), 0, {"transB": 1}),
    "Gemm transA": ((11, 3), (11, 5), 1, {"transA": 1}),
    "MatMul": ((4, 17), (17, 6), 1, {}),
    "MatMul of batches": ((2, 3, 9), (9, 4), 1, {}),
}


@st.composite
def layers(draw: st.DrawFn, signs: tuple[str, str, str] | None = None) -> LayerModel:
    """Draw a layer: kind, dtypes, per tensor or channel, zero points, bias as int32 or float, Relu, Clip."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    of_x, of_w, axis, attributes = KINDS[kind]
    signs = signs or draw(st.sampled_from(SIGNS))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    channels = of_w[axis] * (attributes.get("group", 1) if kind.startswith("ConvTranspose") else 1)
    per_channel = draw(st.booleans()) and channels == of_w[axis]
    scales = [np.float32(10 ** random.uniform(-4, 1)) for _ in range(2)]
    w_scale = (10 ** random.uniform(-3, -1, channels if per_channel else ())).astype(np.float32)
    zeros = [draw(st.sampled_from([int(np.iinfo(d).min), int(np.iinfo(d).max), 0, 3])) for d in signs]
    x, w = (_numbers(random, shape, dtype) for shape, dtype in zip((of_x, of_w), signs))
    w_zero = np.full(w_scale.shape, zeros[1], signs[1])
    if per_channel and draw(st.booleans()):
        w_zero = _numbers(random, w_scale.shape, signs[1])
    of_channels = [channels if i == axis else 1 for i in range(len(of_w))] if per_channel else []
    total = _sums(
        kind,
        x.astype(np.int64) - zeros[0],
        w.astype(np.int64) - w_zero.astype(np.int64).reshape(of_channels),
        attributes,
    )
    # a scale with which results fill their dtype
    scales[1] = np.float32(scales[0] * w_scale.max() * max(1, np.abs(total).max()) / random.choice([60, 120, 400]))
    bias_kind = draw(st.sampled_from(["none", "int32", "float", "added"]))
    along = (1 if kind.startswith("Conv") else total.ndim - 1,)
    spread = [channels if i in along else 1 for i in range(total.ndim)]
    step_in = np.float32(scales[0]) * np.atleast_1d(w_scale)
    constants: dict[str, Array] = {
        "xs": scales[0], "ys": scales[1], "ws": w_scale, "w": w,
        **{f"{n}z": np.asarray(z, d) for n, z, d in zip("xwy", zeros, signs)}, "wz": w_zero,
    }  # fmt: skip
    on_axis = {"axis": axis} if per_channel else {}
    node = helper.make_node
    nodes = [
        node("DequantizeLinear", ["x", "xs", "xz"], ["xf"], name="dequantise_x"),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], name="dequantise_w", **on_axis),
    ]
    operator = kind.split()[0]
    inputs = ["xf", "wf"]
    extra = []
    if bias_kind != "none":
        bias = random.integers(-(1 << 12), 1 << 12, channels).astype(np.int32)
        total = total + bias.reshape(spread)
        if bias_kind == "float":
            constants["bf"] = (bias * step_in.astype(np.float64)).astype(np.float32)
        else:
            constants |= {"b": bias, "bs": step_in if per_channel else step_in[0]}
            nodes.append(
                node(
                    "DequantizeLinear", ["b", "bs"], ["bf"], name="dequantise_b", **({"axis": 0} if per_channel else {})
                )
            )
        if bias_kind == "added" or operator == "MatMul":
            name = "bf"
            if operator.startswith("Conv"):
                nodes.append(node("Reshape", ["bf", "spread"], ["bs4"], name="spread"))
                constants["spread"], name = np.asarray(spread, np.int64), "bs4"
            extra.append(node("Add", ["t", name] if random.random() < 0.5 else [name, "t"], ["t1"], name="add"))
        else:
            inputs.append("bf")
    nodes.append(node(operator, inputs, ["t"], name="layer", **attributes))
    nodes += extra
    last = extra[-1].output[0] if extra else "t"
    info = np.iinfo(signs[2])
    low, high = int(info.min), int(info.max)
    activation = draw(st.sampled_from(["none", "Relu", "Clip"]))
    if activation == "Relu":
        nodes.append(node("Relu", [last], ["a"], name="relu"))
        last, low = "a", max(low, zeros[2])
    elif activation == "Clip":
        constants |= {"low": np.float32(-20.2 * scales[1]), "high": np.float32(30.7 * scales[1])}
        nodes.append(node("Clip", [last, "low", "high"], ["a"], name="clip"))
        bounds = [int(np.clip(round(n) + zeros[2], info.min, info.max)) for n in (-20.2, 30.7)]
        last, (low, high) = "a", bounds
    nodes.append(node("QuantizeLinear", [last, "ys", "yz"], ["y"], name="quantise"))
    step = step_of(scales[0], w_scale, scales[1])
    expected = requantised(total, step.reshape(spread) if per_channel else step, zeros[2], signs[2])
    expected = np.clip(expected, low, high).astype(signs[2])
    about = {"bias": bias_kind, "activation": activation, "per_channel": per_channel, "zeros": zeros}
    return LayerModel(kind, x, expected, nodes, constants, signs, about)


def _sums(kind: str, x: Array, w: Array, attributes: dict[str, Any]) -> Array:
    if kind.startswith("ConvTranspose"):
        pads, extra = attributes.get("pads", [0]), attributes.get("output_padding", [0])
        return transposed(x, w, pads[0], attributes["strides"][0], extra[0], attributes.get("group", 1))
    if kind.startswith("Conv"):
        return convolved(x, w, attributes["pads"][0], attributes["strides"][0], attributes.get("group", 1))
    return (x.T if attributes.get("transA") else x) @ (w.T if attributes.get("transB") else w)


def _numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)
