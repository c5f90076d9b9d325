"""Say by operator which operands give results that keep a constraint: one row each.

    x ─► Cast ─► Add 3 ─► Gather from 10 rows        x + 3 in −10 … 9, so x in −13 … 6

An operator without a row passes nothing on: its results are not its operands' values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from .constraint import Constraint, Form, Strength, suggested, telling
from .node_view import NodeView
from .operand_rows import LEAST

Row = Callable[[NodeView, Constraint], Mapping[int, Constraint]]

#: forms that only depend on the order of elements
_FLAT = ("exact", "additive", "logits", "mask", "hides", "shape")
#: largest product of an integer and a constant
_PRODUCT = 1 << 30


def _keep(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass everything on: results are the operand."""
    return {0: wanted}


def _reorder(*operands: int) -> Row:
    """Return the row of an operator that moves elements of these operands."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        form = wanted.form
        if form is not None and form.kind not in _FLAT:
            last = node.size(0, -1)
            same = last is not None and (dims := node.result_dims()) is not None and dims[-1:] == (last,)
            form = form if same and form.kind in ("coordinates", "places", "boxes", "rois") else None
        kept = Constraint(wanted.low, wanted.high, wanted.strength, wanted.avoid, form)
        return dict.fromkeys(operands, kept)

    return row


def _concat(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass to each operand its share of the coordinates."""
    form, last = wanted.form, node.result_dims()
    axis = node.attribute("axis", 0)
    plain = wanted.within(wanted.low, wanted.high, avoid=wanted.avoid)
    found, start = {}, 0
    for number in range(len(node.node.input)):
        size = node.size(number, axis)
        share = plain
        if form is not None and form.kind in ("coordinates", "places") and last and axis in (-1, len(last) - 1) and size:
            sizes = form.sizes[start : start + size]
            low = -min(sizes, default=1.0) if wanted.low < 0 else 0
            share = Constraint(low, min(sizes, default=1.0) - 1, wanted.strength, wanted.avoid, Form("coordinates", sizes))
            start += size
        found[number] = share
    return found


def _limits(node: NodeView, number: int) -> tuple[float, float] | None:
    """Return the least and largest value of a constant operand."""
    value = node.constant(number)
    if value is None or not value.size or value.dtype.kind not in "iuf" or not np.isfinite(value).all():
        return None
    return float(value.min()), float(value.max())


def _arithmetic(inverse: Callable[[NodeView, Constraint, int], Constraint | None]) -> Row:
    """Return the row of an operator of two operands from the inverse by one of them."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        found = {number: inverse(node, wanted, number) for number in (0, 1)}
        return {number: constraint for number, constraint in found.items() if constraint is not None}

    return row


def _additive(node: NodeView, wanted: Constraint, number: int) -> Form | None:
    """Return the form of a mask if an operand is added to larger logits."""
    dims, result = node.dims(number), node.result_dims()
    if wanted.form is None or wanted.form.kind != "logits" or dims is None or result is None or None in (*dims, *result):
        return None
    small = math.prod(size or 1 for size in dims) < math.prod(size or 1 for size in result)
    return Form("additive") if small and dims[-1:] == result[-1:] else None


def _add(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    other = _limits(node, 1 - number)
    if other is None:  # each operand takes half of it
        low, high = (side / 2 if math.isfinite(side) else side for side in (wanted.low, wanted.high))
        return Constraint(low, high, wanted.strength, form=_additive(node, wanted, number))
    return _shifted(wanted, *other)


def _shifted(wanted: Constraint, low: float, high: float) -> Constraint:
    """Constrain x so that x + c is as wanted for every c from low to high."""
    avoid = frozenset(value - low for value in wanted.avoid) if low == high else frozenset()
    return _sorted(wanted.low - low, wanted.high - high, wanted, avoid)


def _sorted(low: float, high: float, wanted: Constraint, avoid: frozenset[float]) -> Constraint:
    """Return the interval; the value between its sides where no value suits every constant."""
    if low > high:
        low = high = (low + high) / 2
    return wanted.within(low, high, avoid=avoid)


def _subtract(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    other = _limits(node, 1 - number)
    if other is None:
        return _apart(wanted, number)
    if number == 0:
        return _shifted(wanted, -other[1], -other[0])
    if other == (1.0, 1.0) and wanted.strength < Strength.UNDEFINED:
        return telling(0, 1)  # 1 − x: the complement of a mask
    avoid = frozenset(other[0] - value for value in wanted.avoid) if other[0] == other[1] else frozenset()
    return _sorted(other[1] - wanted.high, other[0] - wanted.low, wanted, avoid)


def _apart(wanted: Constraint, number: int) -> Constraint:
    """Constrain both operands of a difference, so that it is as wanted."""
    if math.isfinite(wanted.low) and math.isfinite(wanted.high):
        middle = (wanted.low + wanted.high) / 2
        return wanted.within(middle, wanted.high) if number == 0 else wanted.within(0, middle - wanted.low)
    if number == 0:
        return wanted.within(wanted.low + 1, wanted.high - 1)
    return wanted.within(-1 if math.isfinite(wanted.high) else -math.inf, 1 if math.isfinite(wanted.low) else math.inf)


def _multiply(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    zero = wanted.avoid & {0.0}
    if node.operand(0) == node.operand(1):  # a square
        return wanted.within(-math.inf, math.inf, avoid=zero)
    other = _limits(node, 1 - number)
    if other is None:
        return _factor(wanted, zero)
    scaled = _scaled(wanted, *other)
    largest = max(1.0, *map(abs, other))
    return replace(scaled or wanted.within(-math.inf, math.inf), magnitude=_PRODUCT / largest)


def _factor(wanted: Constraint, avoid: frozenset[float]) -> Constraint:
    """Constrain each of two factors, so that their product is as wanted."""
    low, high = wanted.low, wanted.high
    if low < 0 < high and math.isfinite(min(-low, high)) and not math.isinf(low):
        most = math.sqrt(min(-low, high))
        return wanted.within(-most, most, avoid=avoid)
    if low == -math.inf:
        return wanted.within(low, math.inf if high > 0 else 0, avoid=avoid)
    least = 0.0 if low <= 0 else max(1.0, math.sqrt(low))
    return wanted.within(least, max(least, math.sqrt(high)) if math.isfinite(high) else high, avoid=avoid)


def _scaled(wanted: Constraint, low: float, high: float) -> Constraint | None:
    """Constrain x so that x · c is as wanted for every c from low to high; None if c changes its sign or is 0."""
    if low <= 0 <= high:
        return None
    sides = [(side / c) for c in (low, high) for side in (wanted.low, wanted.high)]
    pairs = [sorted(sides[:2]), sorted(sides[2:])]
    avoid = frozenset(value / low for value in wanted.avoid) if low == high else wanted.avoid & {0.0}
    return _sorted(max(pair[0] for pair in pairs), min(pair[1] for pair in pairs), wanted, avoid)


def _divide(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    if number == 1:
        positive = wanted.strength == Strength.FAILS or 0 <= wanted.low < math.inf
        return wanted.within(1 if wanted.strength == Strength.FAILS else LEAST, math.inf) if positive else None
    other = _limits(node, 1)
    if other is None:
        return wanted.within(max(wanted.low, 0) if wanted.low > -math.inf else wanted.low, wanted.high)
    if other[0] <= 0 <= other[1]:
        return None
    return _scaled(wanted, *sorted((1 / other[0], 1 / other[1])))


def _negate(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    return {0: wanted.within(-wanted.high, -wanted.low, avoid=frozenset(-value for value in wanted.avoid))}


def _absolute(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    low = wanted.low if wanted.low > 0 else -wanted.high
    return {0: wanted.within(low, max(low, wanted.high), avoid=wanted.avoid)}


def _root(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    return {0: wanted.within(max(0.0, wanted.low) ** 2, max(0.0, wanted.high) ** 2, avoid=wanted.avoid & {0.0})}


def _rectify(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    low = wanted.low if wanted.low > 0 else -math.inf
    return {0: wanted.within(low, max(low, wanted.high))}


def _bound(node: NodeView, wanted: Constraint, least: float, most: float) -> Constraint:
    """Leave a side open that a bound keeps."""
    low = -math.inf if least >= wanted.low else wanted.low
    high = math.inf if most <= wanted.high else wanted.high
    return wanted.within(low, high, avoid=frozenset(value for value in wanted.avoid if least < value < most))


def _clip(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    least, most = _limits(node, 1), _limits(node, 2)
    low = node.attribute("min", least[0] if least else -math.inf)
    return {0: _bound(node, wanted, low, node.attribute("max", most[1] if most else math.inf))}


def _extremes(largest: bool) -> Row:
    """Return the row of Max or Min: what the constants among the operands keep, the others need not."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        limits = {number: _limits(node, number) for number in range(len(node.node.input))}
        known = [each for each in limits.values() if each is not None]
        least = max((each[0] for each in known), default=-math.inf) if largest else -math.inf
        most = min((each[1] for each in known), default=math.inf) if not largest else math.inf
        return {number: _bound(node, wanted, least, most) for number, each in limits.items() if each is None}

    return row


def _choose(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass everything on to both values; of logits, the condition hides positions where one is a constant."""
    found = dict.fromkeys((1, 2), wanted)
    constants = [node.constant(number) is not None for number in (1, 2)]
    if wanted.form is not None and wanted.form.kind == "logits" and constants[0] != constants[1]:
        found[0] = suggested(form=Form("hides" if constants[0] else "mask"))
    return found


def _invert(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    other = {"mask": "hides", "hides": "mask"}
    kind = other.get(wanted.form.kind) if wanted.form is not None else None
    return {0: suggested(form=Form(kind))} if kind else {}


def _dequantise(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Constrain q so that (q − zero) · scale is as wanted."""
    affine = _affine(node)
    if affine is None:
        return {}
    scale, zero = affine
    low, high = wanted.low / scale + zero, wanted.high / scale + zero
    whole = (math.ceil(low) if math.isfinite(low) else low, math.floor(high) if math.isfinite(high) else high)
    return {0: wanted.within(whole[0], max(whole), avoid=_each(wanted, 1 / scale, zero))}


def _quantise(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    affine = _affine(node)
    if affine is None:
        return {}
    scale, zero = affine
    return {0: wanted.within((wanted.low - zero) * scale, (wanted.high - zero) * scale, avoid=_each(wanted, scale, -zero * scale))}


def _each(wanted: Constraint, factor: float, offset: float) -> frozenset[float]:
    return frozenset(round(value * factor + offset, 9) for value in wanted.avoid)


def _affine(node: NodeView) -> tuple[float, float] | None:
    """Return the scale and zero point of a quantisation by tensor."""
    scale, zero = _limits(node, 1), _limits(node, 2) if node.operand(2) else (0.0, 0.0)
    if scale is None or zero is None or scale[0] != scale[1] or zero[0] != zero[1] or scale[0] <= 0:
        return None
    return scale[0], zero[0]


def _mean(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass an interval on to means and extremes: they lie within it."""
    return {0: wanted.within(wanted.low, wanted.high)}


#: by operator, the constraints that those of a result put on its operands
RESULTS: dict[str, Row] = {
    "Identity": _keep, "Cast": _keep, "CastLike": _keep, "Dropout": _keep,
    **dict.fromkeys(
        """
        Reshape Squeeze Unsqueeze Flatten Transpose Expand Slice Gather GatherElements GatherND Pad Tile Split DepthToSpace
        SpaceToDepth Compress ReverseSequence TopK Trilu
        """.split(),
        _reorder(0),
    ),
    "ScatterElements": _reorder(0, 2), "Scatter": _reorder(0, 2), "ScatterND": _reorder(0, 2), "Concat": _concat,
    "Where": _choose, "Not": _invert, "QuantizeLinear": _quantise, "DequantizeLinear": _dequantise, "Add": _arithmetic(_add), "Sub": _arithmetic(_subtract), "Mul": _arithmetic(_multiply),
    "Div": _arithmetic(_divide), "Neg": _negate, "Abs": _absolute, "Sqrt": _root, "Relu": _rectify, "Clip": _clip,
    "Max": _extremes(True), "Min": _extremes(False), "ReduceMean": _mean, "ReduceMax": _mean,
    "ReduceMin": _mean, "MaxPool": _mean, "GlobalMaxPool": _mean, "Floor": _keep, "Ceil": _keep, "Round": _keep,
}  # fmt: skip
#: operators that give values on as they are, and compare them: integers may be of any size
MOVES = frozenset(RESULTS) - {"Add", "Sub", "Mul", "Div", "Neg", "Abs", "Sqrt", "ReduceMean", "QuantizeLinear", "DequantizeLinear"} | frozenset(
    "Less LessOrEqual Greater GreaterOrEqual Equal And Or Not Xor Shape Size Sign ArgMax ArgMin NonZero Hardmax".split()
)
