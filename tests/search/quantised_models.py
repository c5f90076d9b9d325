"""Random ONNX models quantised in part: some layers in integers, some left in float between two quantisations.

Scales are powers of two, weights of layers in float small whole numbers: every sum is exact in whatever order, so
results of two programs of one model are equal byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto

from ..models import model_of
from .mixed_models import Builder

_T = TypeVar("_T")
#: take one of several options
Choose = Callable[[Sequence[_T]], _T]
_SCALE = 1 / 16
_OPS = (
    "conv", "conv", "conv", "depthwise", "depthwise", "float-conv", "float-conv", "float-depthwise", "float-transposed", "add", "add",
    "concat", "resize", "linear", "max-pool", "average-pool", "gate", "slice", "pad", "transpose", "matmul", "clip", "integer",
)  # fmt: skip


class QuantisedBuilder(Builder):
    """Adds layers to values of int8 or uint8, all of one scale and zero point."""

    def __init__(self, choose: Choose, unsigned: bool):
        super().__init__()
        self.choose, self.dtype = choose, np.uint8 if unsigned else np.int8
        self.random = np.random.default_rng(choose(range(64)))
        self.scale, self.zero = self.constant(np.float32(_SCALE)), self.constant(self.dtype(119 if unsigned else -9))
        self.still = self.constant(np.int8(0))

    def quantised(self, x: str) -> str:
        return self.node("QuantizeLinear", [x, self.scale, self.zero])[0]

    def dequantised(self, x: str) -> str:
        return self.node("DequantizeLinear", [x, self.scale, self.zero])[0]

    def in_float(self, op: str, x: str, *others: str, **attributes: object) -> str:
        return self.quantised(self.node(op, [self.dequantised(x), *others], **attributes)[0])

    def conv(self, x: str, *shape: int, **attributes: object) -> str:
        """Add a convolution of integers, its weights scaled filter by filter."""
        fan = int(np.prod(shape[1:]))
        scales = 2.0 ** self.random.integers(-9, -7, shape[0]) / max(1, fan // 16)
        weights = [
            self.random.integers(-127, 128, shape).astype(np.int8),
            scales.astype(np.float32),
            np.zeros(shape[0], np.int8),
        ]
        bias = self.constant(self.random.integers(-500, 500, shape[0]).astype(np.int32))
        names = [self.constant(each) for each in weights]
        return self.node("QLinearConv", [x, self.scale, self.zero, *names, self.scale, self.zero, bias], **attributes)[
            0
        ]

    def weights(self, *shape: int) -> str:
        return self.constant(self.random.integers(-3, 4, shape).astype(np.float32) / 8)

    def grow_by(self, op: str, x: str, shape: tuple[int, ...], partner: str) -> None:
        batch, channels, height, width = shape
        choose = self.choose
        if op in ("conv", "depthwise", "float-conv", "float-depthwise"):
            size, stride, late = choose((1, 3, 3)), choose((1, 1, 2)), choose((0, 1))
            size = 3 if "depth" in op else size
            group = channels if "depth" in op else 1
            filters = channels if "depth" in op else choose((4, 8, 16, channels))
            pads = [1 - late, 1, late + choose((0, 1)), 1] if size == 3 else [0] * 4
            attributes = {"pads": pads, "strides": [stride, stride], "group": group}
            extents = [(e + pads[n] + pads[n + 2] - size) // stride + 1 for n, e in enumerate((height, width))]
            if min(extents) < 1:
                return
            kernel = filters, channels // group, size, size
            y = (
                self.in_float("Conv", x, self.weights(*kernel), **attributes)
                if "float" in op
                else self.conv(x, *kernel, **attributes)
            )
            shape = (batch, filters, *extents)
        elif op == "float-transposed" and height * width <= 100:
            weight = self.weights(channels, 4, 2, 2)
            y, shape = self.in_float("ConvTranspose", x, weight, strides=[2, 2]), (batch, 4, 2 * height, 2 * width)
        elif op == "add":
            total = self.node("Add", [self.dequantised(x), self.dequantised(partner)])[0]
            y = self.quantised(self.node("Relu", [total])[0] if choose((0, 1)) else total)
        elif op == "concat" and channels <= 16:
            y, shape = self.node("Concat", [x, partner], axis=1)[0], (batch, 2 * channels, height, width)
        elif op in ("resize", "linear") and height * width <= 100:
            scales = self.constant(np.array([1, 1, 2, 2], np.float32))
            mode = "linear" if op == "linear" else "nearest"
            y, shape = self.in_float("Resize", x, "", scales, mode=mode), (batch, channels, 2 * height, 2 * width)
        elif op in ("max-pool", "average-pool") and min(height, width) >= 3:
            size, stride, pad = choose((2, 3)), choose((1, 2)), choose((0, 1))
            attributes = {"kernel_shape": [size, size], "strides": [stride, stride], "pads": [pad] * 4}
            y = (
                self.node("MaxPool", [x], **attributes)[0]
                if op == "max-pool"
                else self.in_float("AveragePool", x, **attributes)
            )
            shape = (batch, channels, *((e + 2 * pad - size) // stride + 1 for e in (height, width)))
        elif op == "gate":
            mean = self.in_float("GlobalAveragePool", x)
            gate = self.conv(mean, channels, channels, 1, 1)
            y = self.quantised(self.node("Mul", [self.dequantised(x), self.dequantised(gate)])[0])
        elif op == "slice" and channels > 1:
            axis, end = choose(((1, channels // 2), (2, height - 1), (3, width - 1)))
            if end < 2:
                return
            bounds = [self.constant(np.array([each], np.int64)) for each in (1 if axis > 1 else 0, end, axis)]
            y = self.node("Slice", [x, *bounds])[0]
            shape = tuple((end - (axis > 1)) if n == axis else e for n, e in enumerate(shape))
        elif op == "pad":
            pads = self.constant(np.array([0, 0, 1, 2, 0, 0, 0, 1], np.int64))
            y, shape = self.in_float("Pad", x, pads), (batch, channels, height + 1, width + 3)
        elif op == "transpose":
            y, shape = self.node("Transpose", [x], perm=[0, 1, 3, 2])[0], (batch, channels, width, height)
        elif op == "matmul":
            weight, scale = (
                self.constant(self.random.integers(-127, 128, (width, 8)).astype(np.int8)),
                self.constant(np.float32(1 / 256)),
            )
            y = self.node(
                "QLinearMatMul", [x, self.scale, self.zero, weight, scale, self.still, self.scale, self.zero]
            )[0]
            shape = (batch, channels, height, 8)
        elif op == "integer":
            weight = self.constant(self.random.integers(-127, 128, (8, channels, 1, 1)).astype(np.int8))
            total = self.node("Cast", [self.node("ConvInteger", [x, weight, self.zero])[0]], to=TensorProto.FLOAT)[0]
            y, shape = (
                self.quantised(self.node("Mul", [total, self.constant(np.float32(2**-11))])[0]),
                (batch, 8, height, width),
            )
        else:
            bounds = self.constant(np.float32(-2)), self.constant(np.float32(4))
            y = self.in_float("Clip", x, *bounds)
        self.values.append((y, shape))


def quantised_model(choose: Choose, most: int = 8) -> onnx.ModelProto:
    """Return a model of one input x of bytes, or of float pixels with channels last; one or two outputs."""
    builder = QuantisedBuilder(choose, choose((False, True)))
    shape = (1, *choose(((8, 8, 8), (3, 12, 13), (16, 9, 7), (4, 16, 16), (8, 5, 12), (16, 16, 16))))
    given = shape
    code = TensorProto.UINT8 if builder.dtype is np.uint8 else TensorProto.INT8
    start, dtypes = "x", {"x": code}
    if choose((False, False, True)):
        given, dtypes = (1, *shape[2:], shape[1]), {}
        start = builder.quantised(builder.node("Transpose", ["x"], perm=[0, 3, 1, 2])[0])
    builder.values.append((start, shape))
    for _ in range(choose(range(3, most + 1))):
        x, extents = choose(builder.values[-3:])
        partner = choose([name for name, other in builder.values if other == extents])
        builder.grow_by(choose(_OPS), x, extents, partner)
    results = [name for name, _ in builder.values[1:]] or [start]
    outputs = list(dict.fromkeys([results[-1], choose(results)]))
    if choose((False, True)):
        outputs[0] = builder.dequantised(outputs[0])

    codes = {node.output[0]: node.op_type for node in builder.nodes}
    dtypes |= {name: TensorProto.FLOAT if codes[name] == "DequantizeLinear" else code for name in outputs}
    return model_of(builder.nodes, {"x": given}, outputs, builder.constants, dtypes=dtypes, opset=18, name="quantised")


@st.composite
def quantised_models(draw: st.DrawFn, most: int = 8) -> onnx.ModelProto:
    """Draw such a model."""
    return quantised_model(lambda options: draw(st.sampled_from(options)), most)
