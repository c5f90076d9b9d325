"""Describe the quantisation of a tensor: value = (number − zero point) · scale, for all or for each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.graph_context import Context
from ..canonical.node_builder import NodeBuilder, attributes_of

if TYPE_CHECKING:
    import onnx

#: dtypes of operands of integer layers
EIGHT_BITS = ("int8", "uint8")


@dataclass(frozen=True)
class Quantisation:
    """Scales (float32) and zero points of a tensor of `dtype`, one each, or one for each index along `axis`."""

    scale: tuple[float, ...]
    zero: tuple[int, ...]
    dtype: str
    axis: int | None = None

    @property
    def limits(self) -> tuple[int, int]:
        """Least and largest number of the dtype."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def quantise(self, value: float) -> int:
        """Return the number of a value as QuantizeLinear computes it: a division in float32, rounded half to even."""
        least, most = self.limits
        with np.errstate(over="ignore"):
            number = float(np.rint(np.float32(value) / np.float32(self.scale[0]))) + self.zero[0]
        return int(min(max(number, least), most))

    def dequantise(self, number: int) -> float:
        """Return the value of a number, in float32."""
        return float(np.float32(number - self.zero[0]) * np.float32(self.scale[0]))

    @property
    def returns(self) -> bool:
        """Whether a number survives dequantisation and quantisation: scales of few bits lose it."""
        least, most = self.limits
        info = np.finfo(np.float32)
        return all(float(info.tiny) <= each <= float(info.max) / (most - least) for each in self.scale)


@dataclass(frozen=True)
class Quantised:
    """Integer tensor `name` with the names of its scale and zero point, for nodes that read them."""

    name: str
    scale: str
    zero: str
    quantisation: Quantisation

    def zero_in(self, build: NodeBuilder) -> str:
        """Return the name of the zero point; add a constant if none is given."""
        if self.zero:
            return self.zero
        dtype = np.dtype(self.quantisation.dtype)
        zero = np.zeros(len(self.quantisation.zero), dtype)
        return build.constant(zero if self.quantisation.axis is not None else zero.reshape(()))


def quantised_by(node: onnx.NodeProto, context: Context) -> Quantised | None:
    """Return the integer side of a QuantizeLinear or DequantizeLinear node.

    None for scales that are not float32 constants, for blocks of a channel, and for dtypes NumPy does not have.
    """
    attributes = attributes_of(node)
    scale = context.constant(node.input[1])
    zero_name = node.input[2] if len(node.input) > 2 else ""
    zero = context.constant(zero_name) if zero_name else None
    integer = node.input[0] if node.op_type == "DequantizeLinear" else node.output[0]
    if scale is None or scale.dtype != np.float32 or scale.ndim > 1 or (zero_name and zero is None):
        return None
    if attributes.get("block_size") or integer not in context.types:
        return None
    dtype = context.dtype(integer).name
    if dtype not in (*EIGHT_BITS, "int16", "uint16", "int32"):
        return None
    numbers = zero.astype(np.int64) if zero is not None else np.zeros(scale.shape, np.int64)
    if numbers.size != scale.size:
        return None
    axis, shape = None, context.shape(integer)
    if scale.size > 1:
        if shape is None:
            return None
        axis = attributes.get("axis", 1) % len(shape)
    values = tuple(float(each) for each in scale.ravel())
    return Quantised(
        integer, node.input[1], zero_name, Quantisation(values, tuple(numbers.ravel().tolist()), dtype, axis)
    )
