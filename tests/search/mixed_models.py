"""Random ONNX models of many kinds of operators: quantised, indexed, resized, cut, joined, transposed, reduced."""

from __future__ import annotations

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto, helper

from ..models import model_of

_OPS = (
    "conv", "matmul", "quantise", "top-k", "resize", "split", "concat", "transpose", "relu", "sigmoid", "add", "mul",
    "mean", "cast",
)  # fmt: skip


class Builder:
    """Adds nodes to float32 values; each is a name and its shape of four axes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.values: list[tuple[str, tuple[int, ...]]] = []
        self.random = np.random.default_rng(0)

    def constant(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = values
        return name

    def node(self, op: str, inputs: list[str], results: int = 1, **attributes: object) -> list[str]:
        names = [f"v{len(self.nodes)}_{place}" for place in range(results)]
        self.nodes.append(helper.make_node(op, inputs, names, f"n{len(self.nodes)}", **attributes))
        return names

    def grow(self, op: str, x: str, shape: tuple[int, ...], partner: str) -> None:
        batch, channels, height, width = shape
        if op == "conv":
            weight = self.constant(self.random.standard_normal((4, channels, 3, 3)).astype(np.float32))
            (y,), shape = self.node("Conv", [x, weight], pads=[1] * 4), (batch, 4, height, width)
        elif op == "matmul":
            weight = self.constant(self.random.standard_normal((width, 6)).astype(np.float32))
            (y,), shape = self.node("MatMul", [x, weight]), (batch, channels, height, 6)
        elif op == "quantise":
            scale, zero = self.constant(np.float32(0.05)), self.constant(np.int8(3))
            (q,) = self.node("QuantizeLinear", [x, scale, zero])
            (y,) = self.node("DequantizeLinear", [q, scale, zero])
        elif op == "top-k":
            most = self.constant(np.array([min(3, width)], np.int64))
            y, _ = self.node("TopK", [x, most], 2, axis=3)
            shape = (batch, channels, height, min(3, width))
        elif op == "resize" and height * width <= 64:
            scales = self.constant(np.array([1, 1, 2, 2], np.float32))
            (y,) = self.node("Resize", [x, "", scales], mode="nearest")
            shape = (batch, channels, 2 * height, 2 * width)
        elif op == "split" and channels % 2 == 0:
            sizes = self.constant(np.array([channels // 2] * 2, np.int64))
            y, other = self.node("Split", [x, sizes], 2, axis=1)
            shape = (batch, channels // 2, height, width)
            self.values.append((other, shape))
        elif op == "concat":
            (y,), shape = self.node("Concat", [x, partner], axis=1), (batch, 2 * channels, height, width)
        elif op == "transpose":
            (y,), shape = self.node("Transpose", [x], perm=[0, 1, 3, 2]), (batch, channels, width, height)
        elif op in ("add", "mul"):
            (y,) = self.node(op.title(), [x, partner])
        elif op == "mean":
            axes = self.constant(np.array([3], np.int64))
            (y,), shape = self.node("ReduceMean", [x, axes], keepdims=1), (batch, channels, height, 1)
        elif op == "cast":
            (half,) = self.node("Cast", [x], to=TensorProto.FLOAT16)
            (y,) = self.node("Cast", [half], to=TensorProto.FLOAT)
        else:
            (y,) = self.node("Sigmoid" if op == "sigmoid" else "Relu", [x])
        self.values.append((y, shape))


@st.composite
def mixed_models(draw: st.DrawFn, most: int = 7) -> onnx.ModelProto:
    """A model of one input x, one to three outputs; some results are read several times, some by nobody."""
    builder = Builder()
    shape = (1, draw(st.sampled_from([2, 4])), *draw(st.sampled_from([(3, 5), (8, 8), (4, 16)])))
    builder.values.append(("x", shape))
    for op in draw(st.lists(st.sampled_from(_OPS), min_size=3, max_size=most)):
        x, extents = draw(st.sampled_from(builder.values[-3:]))
        partner = draw(st.sampled_from([name for name, other in builder.values if other == extents]))
        builder.grow(op, x, extents, partner)
    results = [name for name, _ in builder.values[1:]]
    outputs = list(dict.fromkeys([results[-1], *draw(st.lists(st.sampled_from(results), max_size=2))]))
    return model_of(builder.nodes, {"x": shape}, outputs, builder.constants, opset=18, name="mixed")
