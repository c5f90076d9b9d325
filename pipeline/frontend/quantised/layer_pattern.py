"""Recognise a quantised layer in floats.

x ─► DequantizeLinear ─┐
w ─► DequantizeLinear ─┴► Conv, ConvTranspose, Gemm, MatMul ─► [Add bias] ─► [Relu, Clip] ─► QuantizeLinear ─► y
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import attributes_of
from ..refuse.accumulator import LIMIT, filters_of, largest_sum, reach, unknown_filters
from .dataflow import Dataflow
from .integer_bias import integer_bias
from .integer_moves import clip_bounds
from .quantisation import EIGHT_BITS, Quantised, quantised_by
from .transposed_convolution import Phases, phases_of

if TYPE_CHECKING:
    import onnx

_WINDOWS = ("Conv", "ConvTranspose")
_PRODUCTS = (*_WINDOWS, "Gemm", "MatMul")


@dataclass(frozen=True)
class Layer:
    """Layer of integers: the product's node, its operands and result, its int32 bias, and the bounds of its numbers.

    `phases` are those of a transposed convolution.
    """

    node: onnx.NodeProto
    x: Quantised
    w: Quantised
    y: Quantised
    bias: np.ndarray | None
    low: int
    high: int
    phases: Phases | None = None

    @property
    def clips(self) -> bool:
        """Return whether its bounds are narrower than the dtype: a ReLU is implied if zero is the least number."""
        return (self.low, self.high) != self.y.quantisation.limits


def layer_of(quantise: onnx.NodeProto, graph: Dataflow) -> Layer | None:
    """Return the layer that ends in a QuantizeLinear node.

    None if a value in between is read elsewhere too, an operand is no 8-bit integer or has channels along another axis
    than the result's, the bias is not near enough in int32, or a sum may not fit into int32: then floats compute it.
    """
    y = quantised_by(quantise, graph)
    if y is None or y.quantisation.axis is not None or y.quantisation.dtype not in EIGHT_BITS:
        return None
    low, high, value = -math.inf, math.inf, quantise.input[0]
    while (clip := graph.sole(value, "Relu", "Clip")) is not None:
        bounds = clip_bounds(clip, graph)
        if bounds is None:
            return None
        low, high = (min(max(bound, low), high) for bound in bounds)
        value = clip.input[0]
    node, addend = _product(value, graph)
    if node is None:
        return None
    x, w = (graph.dequantised(name) for name in list(node.input)[:2])
    if x is None or w is None or x.quantisation.axis is not None:
        return None
    if not {x.quantisation.dtype, w.quantisation.dtype} <= set(EIGHT_BITS):
        return None
    shapes = [graph.shape(name) for name in (x.name, w.name, node.output[0])]
    if any(shape is None or len(shape) < 2 for shape in shapes):
        return None
    of_x, of_w, of_y = (shape or () for shape in shapes)
    phases = None
    if node.op_type == "ConvTranspose":
        phases = phases_of(node, of_x, of_w, of_y)
        of_group = (
            phases is not None and phases.groups > 1 and w.quantisation.axis is not None
        )  # channels of all groups share scales
        if phases is None or of_group or graph.constant(w.name) is None:
            return None
    axis = _channels_of(node, len(of_w))
    if (
        axis is None
        or w.quantisation.axis not in (None, axis)
        or (w.quantisation.axis is not None and _is_batched(node, of_w))
    ):
        return None
    bias = None
    if addend:
        windows = node.op_type in _WINDOWS
        place = 1 if windows else len(of_y) - 1
        from_inside = addend in node.input and windows  # one number for each channel, without other axes
        where, rank = (0, 1) if from_inside else (place, len(of_y))
        bias = integer_bias(addend, where, of_y[place], rank, (x.quantisation, w.quantisation, y.quantisation), graph)
        if bias is None or _is_batched(node, of_w):
            return None
    of_channels = phases.per_filter(bias) if phases is not None and bias is not None else bias
    filters = _filters(node, w, of_w, axis, graph) if phases is None else _filters_of_phases(phases, w, graph)
    if largest_sum(reach(x.quantisation.dtype, x.quantisation.zero), filters, of_channels) >= LIMIT:
        return None
    least, most = y.quantisation.limits
    ends = (
        least if low == -math.inf else y.quantisation.quantise(low),
        most if high == math.inf else y.quantisation.quantise(high),
    )
    return Layer(node, x, w, y, bias, *ends, phases)


def _product(value: str, graph: Dataflow) -> tuple[onnx.NodeProto | None, str]:
    """Return the product that makes a value, and the name of its bias, "" without one."""
    node, addend = graph.sole(value, *_PRODUCTS), ""
    total = graph.sole(value, "Add")
    if total is not None:
        for own, other in (total.input, reversed(total.input)):
            node, addend = graph.sole(own, *_PRODUCTS), other
            if node is not None:
                break
    if node is None:
        return None, ""
    inside = node.input[2] if len(node.input) > 2 else ""
    attributes = attributes_of(node)
    if (inside and addend) or attributes.get("alpha", 1.0) != 1.0 or (inside and attributes.get("beta", 1.0) != 1.0):
        return None, ""
    return node, inside or addend


def _channels_of(node: onnx.NodeProto, rank: int) -> int | None:
    """Return the axis of w along which it makes channels of the result."""
    if node.op_type in _WINDOWS:
        return _WINDOWS.index(node.op_type)
    return 0 if attributes_of(node).get("transB") else rank - 1


def _is_batched(node: onnx.NodeProto, of_w: tuple[int, ...]) -> bool:
    return node.op_type == "MatMul" and len(of_w) > 2


def _filters(node: onnx.NodeProto, w: Quantised, of_w: tuple[int, ...], axis: int, graph: Dataflow) -> np.ndarray:
    """Return the filters for the bound of sums."""
    own, weights = w.quantisation, graph.constant(w.name)
    if weights is not None and not _is_batched(node, of_w):
        return filters_of(weights, np.asarray(own.zero), axis)
    length = of_w[-2] if _is_batched(node, of_w) else math.prod(of_w) // max(1, of_w[axis])
    return unknown_filters(reach(own.dtype, own.zero), length)


def _filters_of_phases(phases: Phases, w: Quantised, graph: Dataflow) -> np.ndarray:
    weights, zeros = graph.constant(w.name), w.quantisation.zero
    assert weights is not None  # `layer_of` takes no other
    filters = phases.filters(weights, zeros)
    return filters_of(filters, phases.per_filter(np.asarray(zeros)) if len(zeros) > 1 else np.asarray(zeros), 0)
