"""Small float networks of many kinds, with samples for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ..models import NodeBuilder, model_of


@dataclass
class GivenSamples:
    """Samples at hand, with labels or without."""

    values: list[dict[str, np.ndarray]]
    labels: list[int] | None = None
    digest: str = "given"
    classes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.values)

    def inputs(self, number: int) -> Mapping[str, np.ndarray]:
        return self.values[number]

    def label(self, number: int) -> Any:
        return None if self.labels is None else self.labels[number]


def drawn(model: onnx.ModelProto, count: int = 24, seed: int = 0) -> GivenSamples:
    """Draw samples of a model's float inputs."""
    random = np.random.default_rng(seed)
    shapes = {
        each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in model.graph.input
    }  # fmt: skip
    return GivenSamples(
        [
            {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
            for _ in range(count)
        ]
    )


def convolutional() -> onnx.ModelProto:
    """A convolution with batch normalisation, a depthwise one, a residual, a pooling, a dense layer."""
    b = NodeBuilder()
    first = b.node("Conv", "x", b.weight(8, 3, 3, 3), pads=[1] * 4)
    ones = [b.constant(np.full(8, each, np.float32)) for each in (0.7, 0.1, 0.2, 1.3)]
    normal = b.node("Relu", b.node("BatchNormalization", first, *ones))
    deep = b.node(
        "Clip",
        b.node("Conv", normal, b.weight(8, 1, 3, 3), group=8, pads=[1] * 4),
        b.constant(np.float32(0)),
        b.constant(np.float32(6)),
    )
    joined = b.node("Add", b.node("Conv", deep, b.weight(8, 8, 1, 1)), normal)
    pooled = b.node("Flatten", b.node("GlobalAveragePool", joined))
    return b.model([1, 3, 8, 8], b.node("Gemm", pooled, b.weight(8, 5), b.weight(5)))


def one_dimensional() -> onnx.ModelProto:
    b = NodeBuilder()
    first = b.node("HardSwish", b.node("Conv", "x", b.weight(6, 2, 5), pads=[2, 2], strides=[2]))
    return b.model([1, 2, 32], b.node("Sigmoid", b.node("Conv", first, b.weight(4, 6, 3))), opset=14)


def transposed() -> onnx.ModelProto:
    b = NodeBuilder()
    up = b.node("ConvTranspose", "x", b.weight(4, 3, 2, 2), strides=[2, 2])
    return b.model([1, 4, 6, 6], b.node("Tanh", b.node("Conv", up, b.weight(2, 3, 3, 3), pads=[1] * 4)))


def attention() -> onnx.ModelProto:
    b = NodeBuilder()
    query, key, value = (b.node("MatMul", "x", b.weight(16, 16)) for _ in range(3))
    scores = b.node("Softmax", b.node("MatMul", query, b.node("Transpose", key, perm=[0, 2, 1])), axis=-1)
    scaled = b.node("Add", b.node("MatMul", scores, value), "x")
    normal = b.node("LayerNormalization", scaled, b.weight(16), b.weight(16))
    return b.model([1, 6, 16], b.node("MatMul", normal, b.weight(16, 4)))


def recurrent() -> onnx.ModelProto:
    b = NodeBuilder()
    state = b.node("LSTM", "x", b.weight(1, 32, 6), b.weight(1, 32, 8), hidden_size=8)
    return b.model([5, 1, 6], b.node("MatMul", b.node("Squeeze", state, b.constant(np.array([1]))), b.weight(8, 3)))


def several_outputs() -> onnx.ModelProto:
    """Channels last outside; an old operator set; one output in the middle."""
    b = NodeBuilder()
    turned = b.node("Transpose", "x", perm=[0, 3, 1, 2])
    first = b.node("PRelu", b.node("Conv", turned, b.weight(8, 3, 3, 3)), b.weight(8, 1, 1))
    second = b.node(
        "Transpose",
        b.node("Conv", b.node("MaxPool", first, kernel_shape=[2, 2]), b.weight(4, 8, 1, 1)),
        perm=[0, 2, 3, 1],
    )
    return b.model([1, 8, 8, 3], b.node("Softmax", second, axis=3), first, opset=11)


def lookup() -> onnx.ModelProto:
    """Words looked up in a table, in integers only outside."""
    random = np.random.default_rng(3)
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["words"]),
        helper.make_node("MatMul", ["words", "w"], ["y"], name="product"),
    ]
    weights = {
        "table": random.standard_normal((20, 8)).astype(np.float32),
        "w": random.standard_normal((8, 3)).astype(np.float32),
    }
    return model_of(nodes, {"x": [1, 4]}, ["y"], weights, dtypes={"x": TensorProto.INT64})


KINDS: dict[str, Callable[[], onnx.ModelProto]] = {
    each.__name__: each for each in (convolutional, one_dimensional, transposed, attention, recurrent, several_outputs)
}
