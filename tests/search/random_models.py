"""Random ONNX models for hypothesis: chains and branches of convolutional operators."""

from __future__ import annotations

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import helper

from ..models import model_of

_OPS = (
    "conv",
    "conv",
    "stride",
    "depthwise",
    "relu",
    "sigmoid",
    "add",
    "mul",
    "concat",
    "pool",
    "mean",
    "norm",
    "scale",
)

Shape = "tuple[int, int, int]"


class _Builder:
    """Adds nodes to the values made so far; each value is a name and its channels, height and width."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.random = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.values: list[tuple[str, Shape]] = []

    def weight(self, *shape: int) -> str:
        fan_in = float(np.prod(shape[1:])) or 1.0
        name = f"w{len(self.weights)}"
        values = (self.random.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
        self.weights[name] = values
        return name

    def add(self, op: str, inputs: list[str], shape: Shape, **attributes: object) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}", **attributes))
        self.values.append((name, shape))

    def grow(self) -> None:
        """One more node, mostly behind what was made lately."""
        x, (channels, height, width) = self.draw(st.sampled_from(self.values[-3:]))
        same = (channels, height, width)
        op = self.draw(st.sampled_from(_OPS))
        partners = [name for name, shape in self.values if shape == same]
        if op == "conv":
            given, size = self.draw(st.sampled_from([1, 3, 8])), self.draw(st.sampled_from([1, 3]))
            self.add(
                "Conv", [x, self.weight(given, channels, size, size)], (given, height, width), pads=[size // 2] * 4
            )
        elif op == "stride":
            halved = (2 * channels, (height + 1) // 2, (width + 1) // 2)
            weight = self.weight(2 * channels, channels, 3, 3)
            self.add("Conv", [x, weight], halved, pads=[1] * 4, strides=[2, 2])
        elif op == "depthwise":
            self.add("Conv", [x, self.weight(channels, 1, 3, 3)], same, pads=[1] * 4, group=channels)
        elif op in ("add", "mul"):
            self.add(op.title(), [x, self.draw(st.sampled_from(partners))], same)
        elif op == "concat":
            self.add("Concat", [x, self.draw(st.sampled_from(partners))], (2 * channels, height, width), axis=1)
        elif op == "pool" and min(height, width) >= 2:
            size = self.draw(st.sampled_from([2, 3]) if min(height, width) >= 3 else st.just(2))
            kind = self.draw(st.sampled_from(["MaxPool", "AveragePool"]))
            halved = (channels, (height - size) // 2 + 1, (width - size) // 2 + 1)
            self.add(kind, [x], halved, kernel_shape=[size, size], strides=[2, 2])
        elif op == "mean":
            self.add("GlobalAveragePool", [x], (channels, 1, 1))
        elif op == "norm":
            parts = [self.weight(channels) for _ in range(3)]
            spread = f"w{len(self.weights)}"
            self.weights[spread] = np.full(channels, 1.5, np.float32)
            self.add("BatchNormalization", [x, *parts, spread], same)
        elif op == "scale":
            self.add("Mul", [x, self.weight(1, channels, 1, 1)], same)
        else:
            self.add("Sigmoid" if op == "sigmoid" else "Relu", [x], same)


@st.composite
def models(draw: st.DrawFn, most: int = 8) -> onnx.ModelProto:
    """A model of one image x, one to three outputs; some results are read several times, some by nobody."""
    builder = _Builder(draw)
    extents = st.sampled_from([1, 2, 5, 8, 12])
    shape = (draw(st.sampled_from([1, 2, 3, 4])), draw(extents), draw(extents))
    builder.values.append(("x", shape))
    for _ in range(draw(st.integers(1, most))):
        builder.grow()
    results = [name for name, _ in builder.values[1:]]
    outputs = list(dict.fromkeys([results[-1], *draw(st.lists(st.sampled_from(results), max_size=2))]))
    return model_of(builder.nodes, {"x": (1, *shape)}, outputs, builder.weights, name="random")
