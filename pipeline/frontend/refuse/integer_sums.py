"""Refuse integer layers whose sums may leave int32: implementations would wrap, saturate or differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.graph_context import Values
from ..canonical.read_onnx import refuse
from ..traits import INTEGER_LAYERS
from .accumulator import LIMIT, filters_of, largest_sum, reach, unknown_filters

if TYPE_CHECKING:
    import onnx


def refuse_large_sum(node: onnx.NodeProto, known: Values) -> None:
    """Refuse a node of integer sums beyond int32, as far as its weights are known: raise ModelError."""
    if node.op_type not in INTEGER_LAYERS:
        return
    names = [*node.input, *[""] * 9]
    (x, x_zero), (w, w_zero) = ((names[tensor], names[zero]) for tensor, _, zero in INTEGER_LAYERS[node.op_type])
    bias = names[8] if node.op_type == "QLinearConv" else ""
    shape = known.shape(w)
    if shape is None or len(shape) < 2 or 0 in shape:
        return
    axis = 0 if "Conv" in node.op_type else len(shape) - 1
    weights, zeros = known.constant(w), _zeros(w_zero, known)
    if weights is not None and zeros is not None and zeros.size in (1, shape[axis]) and (axis == 0 or len(shape) == 2):
        filters = filters_of(weights, zeros, axis)
    else:
        filters = unknown_filters(_reach(w, w_zero, known), math.prod(shape[1:]) if axis == 0 else shape[-2])
    most = largest_sum(_reach(x, x_zero, known), filters, known.constant(bias))
    if most >= LIMIT:
        what = f"may sum up to {most}, and its sums are int32: {LIMIT - 1} is the most"
        refuse(node, what, "Split the layer along its channels, or leave it in float32.")


def _zeros(name: str, known: Values) -> np.ndarray | None:
    """Return the zero points, 0 without any, None for unknown ones."""
    value = known.constant(name) if name else np.zeros(1)
    return value.astype(np.int64).ravel() if value is not None else None


def _reach(name: str, zero: str, known: Values) -> int:
    from onnx import TensorProto

    dtype = known.element(name) or known.element(zero)
    word = "int8" if dtype == TensorProto.INT8 else "uint8"
    zeros = _zeros(zero, known)
    return reach(word, zeros.tolist()) if zeros is not None else (1 << 8) - 1
