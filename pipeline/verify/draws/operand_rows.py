"""Say by operator which values ONNX allows for its operands: one row each.

A row maps operand numbers to constraints. It is written for every operator set: an operand an older set has as an
attribute is just missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...frontend.canonical.graph_context import NodeView, Sizes
from .constraint import Constraint, Form, Strength, count, domain, index, suggest, telling
from .shape_rows import (
    Row,
    axes,
    exactly,
    grid_sizes,
    pads,
    repeats,
    result_shape,
    scales_and_sizes,
    slice_bounds,
    split_sizes,
    top_k,
    unit_axes,
)

#: least value where 0 is excluded: results stay finite and of ordinary size
LEAST = 0.01
_POSITIVE = domain(LEAST)


def _fixed(**operands: Constraint) -> Row:
    """Return a row of constraints that depend on nothing: `_0=…` is the first operand."""
    constraints = {int(name[1:]): constraint for name, constraint in operands.items()}
    return lambda node: constraints


def _indices(number: int, axis: str = "axis") -> Row:
    """Return the row of positions along an axis of the first operand."""
    return lambda node: {number: index(node.extent(0, node.get(axis, 0)), negative=node.graph.opset >= 11)}


def _gather_nd(node: NodeView) -> Mapping[int, Constraint]:
    return {1: coordinates(node, batch=node.get("batch_dims", 0))}


def coordinates(node: NodeView, batch: int = 0, kind: str = "coordinates") -> Constraint:
    """Constrain rows of coordinates in the second operand to the first one's axes behind the batch."""
    depth = node.extent(1, -1)
    dims = node.sizes(0)
    sizes = None if depth is None or dims is None else dims[batch : batch + depth]
    if not sizes or any(size is None for size in sizes):
        return index(None)
    known = tuple(float(size) for size in sizes if size is not None)
    return index(int(min(known)), form=Form(kind, known))


def _scatter_nd(node: NodeView) -> Mapping[int, Constraint]:
    """Keep places apart, unless they are summed: the order of writes is open."""
    unordered = node.get("reduction", "none") == "none"
    return {1: coordinates(node, kind="places" if unordered else "coordinates")}


def _scatter_elements(node: NodeView) -> Mapping[int, Constraint]:
    axis = node.get("axis", 0)
    unordered = node.get("reduction", "none") == "none"
    form = Form("distinct", axis=axis) if unordered else None
    return {1: index(node.extent(0, axis), negative=node.graph.opset >= 11, form=form)}


def _one_hot(node: NodeView) -> Mapping[int, Constraint]:
    depth = node.constant(1)
    most = int(depth.reshape(-1)[0]) if depth is not None and depth.size else 1
    return {0: index(most, negative=node.graph.opset >= 11), 1: count(8, 1)}


def _max_unpool(node: NodeView) -> Mapping[int, Constraint]:
    total = _elements(node.sizes(node.result)) or _elements(node.sizes(0))
    unique = {1: index(total, negative=False, form=Form("unique"))}
    shape = exactly(node.sizes(node.result))
    return unique if shape is None else unique | {2: shape}


def _elements(dims: Sizes | None) -> int | None:
    return None if dims is None or None in dims else math.prod(dim for dim in dims if dim is not None)


def _lengths(number: int, axis: str | int) -> Row:
    """Return the row of lengths of sequences: up to the size of an axis, given or named by an attribute."""

    def row(node: NodeView) -> Mapping[int, Constraint]:
        along = axis if isinstance(axis, int) else node.get(axis, 0)
        size = node.extent(0, along)
        return {number: count(size if size is not None else 1, 0 if size is not None else 1)}

    return row


def _recurrent(number: int) -> Row:
    """Return the row of a recurrent layer's lengths, whichever layout it has."""
    return lambda node: _lengths(number, 1 if node.get("layout", 0) else 0)(node)


def _shift(node: NodeView) -> Mapping[int, Constraint]:
    return {1: domain(0, 8 * (node.dtype(1).itemsize if node.element(1) else 1) - 1)}


def _power(node: NodeView) -> Mapping[int, Constraint]:
    """Keep integers small, and bases positive unless the exponent is a whole number."""
    if node.dtype(0).kind in "iu":
        return {0: suggest(9), 1: domain(0, 3)}
    exponent = node.constant(1)
    if exponent is None:
        return {} if node.dtype(1).kind in "iu" else {0: _POSITIVE}
    if (exponent == np.round(exponent)).all():
        return {0: domain(avoid=0)} if (exponent < 0).any() else {}
    return {0: domain(0) if (exponent > 0).all() else _POSITIVE}


def _cast(node: NodeView) -> Mapping[int, Constraint]:
    """Keep casts to integers within the dtype: others are left open."""
    import ml_dtypes
    from onnx import TensorProto, helper

    to = node.get("to", TensorProto.FLOAT)
    if to == TensorProto.BOOL:
        return {0: telling(0, 1)}
    dtype = helper.tensor_dtype_to_np_dtype(to) if to != TensorProto.STRING else np.dtype(object)
    if dtype.kind in "iu" or dtype.name in ("int4", "uint4"):
        limits = ml_dtypes.iinfo(dtype)
        if limits.bits < 64 or (limits.min == 0 and node.dtype(0).kind not in "iu"):
            return {0: domain(float(limits.min), min(float(limits.max), 2.0**62))}
    return {}


def _reach_compared(node: NodeView) -> Mapping[int, Constraint]:
    """Let integers reach the constants they are compared with, and pass them by one."""
    found = {}
    for number in (0, 1):
        value = node.constant(1 - number)
        if value is not None and value.size and value.dtype.kind in "iuf" and np.isfinite(value).any():
            most = float(np.nanmax(value[np.isfinite(value)])) + 1
            if most >= 1:
                found[number] = telling(0, min(most, 1 << 20))
    return found


def _categories(node: NodeView) -> Mapping[int, Constraint]:
    """Draw categories from the least to the greatest that an encoder knows."""
    names = ("cats_int64s", "keys_int64s", "keys_floats")
    known = np.asarray(next(filter(None, (node.get(name) for name in names)), (0,)))
    return {0: telling(float(np.nanmin(known)), float(np.nanmax(known)))}


def _class_numbers(node: NodeView) -> Mapping[int, Constraint]:
    return {1: index(node.extent(0, 1), negative=False), 2: _POSITIVE}


def _roi_align(node: NodeView) -> Mapping[int, Constraint]:
    return {1: _boxes(node, "boxes"), 2: index(node.extent(0, 0), negative=False)}


def _max_roi_pool(node: NodeView) -> Mapping[int, Constraint]:
    return {1: _boxes(node, "rois")}


def _boxes(node: NodeView, kind: str) -> Constraint:
    """Constrain boxes to the picture in the first operand."""
    scale = node.get("spatial_scale", 1.0) or 1.0
    height, width = ((node.extent(0, axis) or 1) / scale for axis in (2, 3))
    return Constraint(0, min(height, width), form=Form(kind, (width, height, float(node.extent(0, 0) or 1))))


def _suppression(node: NodeView) -> Mapping[int, Constraint]:
    boxes = Constraint(0, 1, form=Form("boxes", (1.0, 1.0)))
    return {0: boxes, 1: domain(0, 1), 2: count(node.extent(0, 1) or 1, 1), 3: domain(0, 1), 4: domain(0, 0.5)}


def _attention(node: NodeView) -> Mapping[int, Constraint]:
    from onnx import TensorProto

    is_condition = node.element(3) == TensorProto.BOOL
    mask = suggest(form=Form("mask" if is_condition else "additive"))
    return {3: mask, 6: count(node.extent(1, 2 if node.rank(1) == 4 else 1) or 1, 1)}


def _tensor_scatter(node: NodeView) -> Mapping[int, Constraint]:
    """Let written rows fit after their first position."""
    axis = node.get("axis", -2)
    total, written = node.extent(0, axis), node.extent(1, axis)
    return {2: index(None if total is None or written is None else total - written + 1, negative=False)}


def _rotary(node: NodeView) -> Mapping[int, Constraint]:
    return {3: index(node.extent(1, 0), negative=False)}


#: by operator, the constraints of its operands
OPERANDS: dict[str, Row] = {
    # positions
    "Gather": _indices(1), "GatherElements": _indices(1), "GatherND": _gather_nd, "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements, "ScatterND": _scatter_nd, "OneHot": _one_hot, "MaxUnpool": _max_unpool,
    "ai.onnx.ml:ArrayFeatureExtractor": lambda node: {1: index(node.extent(0, -1), negative=False)},
    "ai.onnx.ml:OneHotEncoder": _categories, "ai.onnx.ml:LabelEncoder": _categories,
    "NegativeLogLikelihoodLoss": _class_numbers, "SoftmaxCrossEntropyLoss": _class_numbers, "RotaryEmbedding": _rotary,
    "SequenceAt": _fixed(_1=index(None)), "TensorScatter": _tensor_scatter,
    # lengths
    "LSTM": _recurrent(4), "GRU": _recurrent(4), "RNN": _recurrent(4), "ReverseSequence": _lengths(1, "time_axis"),
    "Attention": _attention,
    # numbers of things, axes and shapes, where they are not constant
    "TopK": top_k, "Slice": slice_bounds, "CumSum": axes(1), "CumProd": axes(1), "Squeeze": unit_axes, "Unsqueeze": axes(1),
    "Tile": repeats, "Expand": result_shape(1, count(1, 1)), "Split": split_sizes, "SplitToSequence": split_sizes, "Pad": pads,
    "ConstantOfShape": _fixed(_0=count(4, 1)),
    "Reshape": result_shape(1, Constraint(-1, 1, Strength.FAILS, form=Form("shape"))), "Loop": _fixed(_0=count(4)),
    "DFT": lambda node: {1: count(8, 2), 2: index((node.rank(0) or 2) - 1)}, "STFT": _fixed(_1=count(4, 1), _3=count(4, 2)),
    "MelWeightMatrix": _fixed(_0=count(4, 1), _1=count(64, 32), _2=count(16000, 8000), _3=count(100), _4=count(4000, 2000)),
    "Col2Im": _fixed(_1=count(4, 1), _2=count(2, 1)), "CenterCropPad": _fixed(_1=count(4, 1)), "AffineGrid": grid_sizes,
    "Resize": scales_and_sizes, "Upsample": _fixed(_1=domain(1, 2)),
    "Range": _fixed(_0=telling(0, 0), _1=count(8, 1), _2=count(2, 1)), "Trilu": lambda node: {1: index(node.extent(0, -1))},
    "BlackmanWindow": _fixed(_0=count(16, 1)), "HammingWindow": _fixed(_0=count(16, 1)), "HannWindow": _fixed(_0=count(16, 1)),
    **{f"Reduce{kind}": axes(1) for kind in ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")},
    "ReduceLogSum": lambda node: {0: _POSITIVE, **axes(1)(node)},
    # domains of functions
    "Div": _fixed(_1=domain(avoid=0)), "Mod": _fixed(_1=domain(avoid=0)), "Reciprocal": _fixed(_0=domain(avoid=0)), "BitShift": _shift, "Pow": _power,
    "Log": _fixed(_0=_POSITIVE), "Sqrt": _fixed(_0=domain(0)), "Acos": _fixed(_0=domain(-1, 1)), "Asin": _fixed(_0=domain(-1, 1)),
    "Acosh": _fixed(_0=domain(1)), "Atanh": _fixed(_0=domain(-0.99, 0.99)), "Exp": _fixed(_0=suggest(9)),
    "Cast": _cast, "CastLike": _fixed(), "Dropout": _fixed(_1=domain(0, 0.9)), "Bernoulli": _fixed(_0=domain(0, 1)),
    "BatchNormalization": _fixed(_4=_POSITIVE), "GridSample": _fixed(_1=domain(-1.2, 1.2)),
    "QuantizeLinear": _fixed(_1=_POSITIVE), "DequantizeLinear": _fixed(_1=_POSITIVE),
    "QLinearConv": _fixed(_1=_POSITIVE, _4=_POSITIVE, _6=_POSITIVE), "QLinearMatMul": _fixed(_1=_POSITIVE, _4=_POSITIVE, _6=_POSITIVE),
    # pictures
    "RoiAlign": _roi_align, "MaxRoiPool": _max_roi_pool, "NonMaxSuppression": _suppression,
    # comparisons
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"), _reach_compared),
    "Softmax": _fixed(_0=suggest(form=Form("logits"))),
    # choices
    "NonZero": _fixed(_0=suggest(form=Form("sparse", (0, 1)))), "Compress": _fixed(_1=suggest(form=Form("sparse", (0, 1)))),
}  # fmt: skip
