"""Bound the numbers of each channel of quantised tensors, by interval arithmetic from the inputs on.

    sums of a filter:   Σ over weights of the least and the most of (w − w's zero point) · (x − x's zero point), + bias
    numbers:            both ends requantised: a multiplication by a positive number and rounding keep their order

A channel with one number is constant. Quantisers leave many of them: a filter without weights of any size, a ReLU that a
bias keeps at zero. Channels are dimension 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.graph_context import Context
from ..canonical.node_builder import attributes_of
from ..refuse.accumulator import LIMIT, filters_of, largest_sum, reach
from .quantisation import EIGHT_BITS

if TYPE_CHECKING:
    import onnx

#: operators on each element or window of a channel alone, in floats that are 0 if their operand is
_IN_FLOATS = ("AveragePool", "GlobalAveragePool", "Relu")
_SAME_NUMBERS = ("Identity", "MaxPool")


@dataclass(frozen=True)
class Ranges:
    """Least and largest number of each channel, int64; floats that are 0 have the range 0 to 0, others none."""

    low: np.ndarray
    high: np.ndarray

    @property
    def constant(self) -> np.ndarray:
        """Tell for each channel whether it has one number."""
        return self.low == self.high


@dataclass(frozen=True)
class Convolution:
    """Hold the constants of a QLinearConv; its weights are read when they are asked for, as all would take twice the model."""

    read: Callable[[], np.ndarray]
    shape: tuple[int, int, int]
    bias: np.ndarray
    multiplier: np.ndarray
    x_zero: int
    y_zero: int
    dtype: str
    groups: int
    padded: bool

    @property
    def weights(self) -> np.ndarray:
        """Read the weights, zero points subtracted, as filters × channels × taps."""
        return self.read().reshape(self.shape)

    @property
    def depthwise(self) -> bool:
        """Return whether each channel has one filter of its own."""
        return self.groups == self.shape[0] and self.shape[1] == 1

    def numbers(self, sums: np.ndarray) -> np.ndarray:
        """Requantise sums, one for each filter: see integer_layers.py."""
        info = np.iinfo(self.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            values = (sums + self.bias).astype(np.float32) * self.multiplier
        rounded = np.rint(np.clip(values, info.min - self.y_zero, info.max - self.y_zero))
        return rounded.astype(np.int64) + self.y_zero


def convolution_of(node: onnx.NodeProto, context: Context) -> Convolution | None:
    """Return the constants of a QLinearConv; None if one is not a constant, or x has no single zero point."""
    if node.op_type != "QLinearConv":
        return None
    places = {"xs": 1, "xz": 2, "w": 3, "ws": 4, "wz": 5, "ys": 6, "yz": 7}
    constants = ((key, context.constant(node.input[place])) for key, place in places.items())
    found = {key: value for key, value in constants if value is not None}
    given = node.input[8] if len(node.input) > 8 else ""
    bias = context.constant(given) if given else np.zeros(1, np.int32)
    if bias is None or len(found) < len(places):
        return None
    if any(found[key].size != 1 for key in ("xs", "xz", "ys", "yz")) or found["yz"].dtype.name not in EIGHT_BITS:
        return None
    attributes, w = attributes_of(node), found["w"]
    padded = any(attributes.get("pads", ())) or attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
    x_scale, w_scale, y_scale = (np.asarray(found[key], np.float32).reshape(-1) for key in ("xs", "ws", "ys"))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        multiplier = np.broadcast_to((x_scale * w_scale / y_scale).astype(np.float32), len(w))
    filters, biases = filters_of(w, found["wz"], 0), np.broadcast_to(bias.astype(np.int64).ravel(), len(w))
    zeros = int(found["xz"].ravel()[0]), int(found["yz"].ravel()[0])
    in_order = (np.isfinite(multiplier) & (multiplier >= 0)).all()
    if not in_order or largest_sum(reach(found["xz"].dtype.name, zeros[:1]), filters, biases) >= LIMIT:
        return None
    zero_points, shape = found["wz"], (len(w), w.shape[1], math.prod(w.shape[2:]))

    def read() -> np.ndarray:
        constant = context.constant(node.input[3])
        assert constant is not None
        return filters_of(constant, zero_points, 0)

    return Convolution(
        read, shape, biases, multiplier, *zeros, found["yz"].dtype.name, int(attributes.get("group", 1)), padded
    )


def channel_ranges(model: onnx.ModelProto, forms: Sequence[Convolution | None], context: Context) -> dict[str, Ranges]:
    """Bound the channels of the values of `model`, sorted, with inferred shapes; leave out values without bounds.

    `forms` are the constants of each node, see `convolution_of`.
    """
    found: dict[str, Ranges] = {}
    for node, form in zip(model.graph.node, forms):
        made = (
            _ranges(node, found, context) if form is None else _convolve(node, form, found.get(node.input[0]), context)
        )
        shape = context.shape(node.output[0]) if made is not None else None
        if made is not None and shape is not None and len(shape) > 1 and shape[1] == len(made.low):
            found[node.output[0]] = made
    return found


def _ranges(node: onnx.NodeProto, found: dict[str, Ranges], context: Context) -> Ranges | None:
    x = found.get(node.input[0]) if node.input else None
    if x is None or len(node.output) != 1:
        return None
    of_floats = np.issubdtype(context.dtype(node.input[0]), np.floating)
    if node.op_type in _SAME_NUMBERS or (node.op_type in _IN_FLOATS and of_floats) or keeps_channels(node, context):
        return x
    made = _QUANTISERS.get(node.op_type)
    return made(node, x, context) if made is not None else None


def keeps_channels(node: onnx.NodeProto, context: Context) -> bool:
    """Return whether a Reshape adds or removes dimensions of one element after the channels."""
    shapes = [context.shape(name) for name in (node.input[0], node.output[0])] if node.op_type == "Reshape" else []
    if not shapes or any(shape is None or len(shape) < 2 for shape in shapes):
        return False
    one, other = (shape or () for shape in shapes)
    return one[:2] == other[:2] and all(extent == 1 for extent in (*one[2:], *other[2:]))


def _convolve(node: onnx.NodeProto, form: Convolution, x: Ranges | None, context: Context) -> Ranges | None:
    shape = context.shape(node.input[0])
    if shape is None:
        return None
    info = np.iinfo(context.dtype(node.input[0]))
    low, high = (np.full(shape[1], bound) for bound in (info.min, info.max)) if x is None else (x.low, x.high)
    least, most = ((each - form.x_zero).reshape(form.groups, 1, -1) for each in (low, high))
    if form.padded:
        least, most = np.minimum(least, 0), np.maximum(most, 0)
    weights = form.weights
    more, less = (take(weights, 0).sum(2).reshape(form.groups, -1, least.shape[2]) for take in (np.maximum, np.minimum))
    sums = ((more * one + less * other).sum(2).ravel() for one, other in ((least, most), (most, least)))
    return Ranges(*(form.numbers(each) for each in sums))


def _clip(node: onnx.NodeProto, x: Ranges, context: Context) -> Ranges | None:
    bounds = [context.constant(name) if name else None for name in [*node.input[1:3], "", ""][:2]]
    if not np.issubdtype(context.dtype(node.input[0]), np.integer) or any(
        name and bound is None for name, bound in zip(node.input[1:3], bounds)
    ):
        return None
    low, high = x.low, x.high
    for bound, take in zip(bounds, (np.maximum, np.minimum)):
        low, high = (each if bound is None else take(each, int(bound.ravel()[0])) for each in (low, high))
    return Ranges(low, high)


def _zero_of(node: onnx.NodeProto, context: Context) -> int | None:
    zero = context.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(1, np.int64)
    return int(zero.ravel()[0]) if zero is not None and zero.size == 1 else None


def _float_range(node: onnx.NodeProto, x: Ranges, context: Context) -> Ranges | None:
    """Return the range of floats: 0 for channels at their zero point, any else."""
    zero = _zero_of(node, context)
    if zero is None:
        return None
    none = (x.low == zero) & (x.high == zero)
    return Ranges(np.zeros(len(none), np.int64), np.where(none, 0, 1))


def _quantised_range(node: onnx.NodeProto, x: Ranges, context: Context) -> Ranges | None:
    """Return the range of floats quantised: the zero point for 0, any number else."""
    zero = _zero_of(node, context)
    if zero is None or context.dtype(node.output[0]).name not in EIGHT_BITS:
        return None
    info = np.iinfo(context.dtype(node.output[0]))
    return Ranges(np.where(x.constant, zero, info.min), np.where(x.constant, zero, info.max))


_QUANTISERS: dict[str, Callable[[onnx.NodeProto, Ranges, Context], Ranges | None]] = {
    "Clip": _clip, "DequantizeLinear": _float_range, "QuantizeLinear": _quantised_range,
}  # fmt: skip
#: operators of one operand that keep channels apart
BY_CHANNEL = {*_IN_FLOATS, *_SAME_NUMBERS, *_QUANTISERS}
