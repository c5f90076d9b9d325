"""Small ONNX models of common network kinds, with seeded weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from ..models import NodeBuilder


def _conv_bn(m: NodeBuilder, x: str, taken: int, given: int, **attributes: object) -> str:
    y = m.node("Conv", x, m.weight(given, taken, 3, 3), pads=[1, 1, 1, 1], **attributes)
    scale, mean = m.weight(given), m.weight(given)
    variance = m.constant(np.linspace(0.5, 2, given, dtype=np.float32))
    return m.node("BatchNormalization", y, scale, m.weight(given), mean, variance)


def conv_pool() -> onnx.ModelProto:
    """Convolution, batch norm, relu and pooling, on odd extents; the windows of the second pooling overlap."""
    m = NodeBuilder()
    y = m.node("Relu", _conv_bn(m, "x", 3, 5))
    y = m.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = m.node("Clip", _conv_bn(m, y, 5, 7), m.constant(np.float32(0)), m.constant(np.float32(6)))
    y = m.node("AveragePool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = m.node("Flatten", m.node("GlobalAveragePool", y))
    return m.model((1, 3, 13, 11), m.node("Gemm", y, m.weight(4, 7), m.weight(4), transB=1))


def residual() -> onnx.ModelProto:
    """Two branches that meet, one of them depthwise, and a gate over channels."""
    m = NodeBuilder()
    stem = m.node("Relu", _conv_bn(m, "x", 4, 4))
    side = m.node("Conv", stem, m.weight(4, 1, 3, 3), pads=[1, 1, 1, 1], group=4)
    y = m.node("Add", m.node("HardSwish", side), stem)
    gate = m.node("Sigmoid", m.node("Conv", m.node("GlobalAveragePool", y), m.weight(4, 4, 1, 1)))
    y = m.node("Mul", y, gate)
    return m.model((1, 4, 9, 7), m.node("ReduceMax", y, axes=[2, 3], keepdims=0), y)


def attention() -> onnx.ModelProto:
    """Layer norm written out, three projections of it, softmax, and the way back."""
    m = NodeBuilder()
    middle = m.node("Sub", "x", m.node("ReduceMean", "x", axes=[-1]))
    spread = m.node("ReduceMean", m.node("Mul", middle, middle), axes=[-1])
    normal = m.node("Div", middle, m.node("Sqrt", m.node("Add", spread, m.constant(np.float32(1e-5)))))
    query, key, value = (m.node("MatMul", normal, m.weight(10, 6)) for _ in range(3))
    scores = m.node("MatMul", query, m.node("Transpose", key, perm=[0, 2, 1]))
    chance = m.node("Softmax", m.node("Mul", scores, m.constant(np.float32(6**-0.5))), axis=-1)
    y = m.node("MatMul", m.node("MatMul", chance, value), m.weight(6, 10))
    return m.model((2, 7, 10), m.node("Add", y, "x"))


def concat_slice() -> onnx.ModelProto:
    """Split, shuffle, pad, concatenate, slice: data moved more than computed."""
    m = NodeBuilder()
    m.node("Split", "x", results=2, axis=1)
    left, right = m.results()
    left = m.node("Relu", m.node("Conv", left, m.weight(3, 3, 1, 1)))
    y = m.node("Concat", left, right, m.node("Neg", "x"), axis=1)
    y = m.node("Reshape", y, m.constant(np.array([1, 2, 6, 5, 7])))
    y = m.node("Reshape", m.node("Transpose", y, perm=[0, 2, 1, 3, 4]), m.constant(np.array([1, 12, 5, 7])))
    y = m.node("Pad", y, m.constant(np.array([0, 0, 1, 0, 0, 0, 0, 2])))
    starts, ends, axes, steps = (m.constant(np.array(v)) for v in ([1, 0], [11, 9], [1, 3], [3, 2]))
    return m.model((1, 6, 5, 7), m.node("Slice", y, starts, ends, axes, steps), left)


def mlp() -> onnx.ModelProto:
    """Dense layers, the first weight shared, with layer norm as one operator and a log-softmax."""
    m = NodeBuilder()
    shared = m.weight(9, 9)
    y = m.node("Tanh", m.node("MatMul", "x", shared))
    y = m.node("LayerNormalization", m.node("MatMul", y, shared), m.weight(9), m.weight(9), axis=-1)
    y = m.node("Mul", y, m.node("Sigmoid", y))
    y = m.node("Gemm", y, m.weight(9, 5), m.weight(5), alpha=0.5)
    return m.model((3, 9), m.node("LogSoftmax", y, axis=1))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "conv_pool": conv_pool, "residual": residual, "attention": attention, "concat_slice": concat_slice, "mlp": mlp,
}  # fmt: skip
