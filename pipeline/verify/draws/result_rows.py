"""Say by operator which operands give results that keep a constraint: one row each.

    x ─► Cast ─► Add 3 ─► Gather from 10 rows        x + 3 in −10 … 9, so x in −13 … 6

An operator without a row passes nothing on: its results are not its operands' values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...frontend import traits
from ...frontend.canonical.graph_context import NodeView
from .arithmetic_rows import Row, absolute, add, arithmetic, divide, limits_of, multiply, negate, root, subtract
from .constraint import Constraint, Form, suggest

#: forms that only depend on the order of elements
_FLAT = ("exact", "additive", "logits", "mask", "hides", "shape", "sparse")


def _keep(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass everything on: results are the operand."""
    return {0: wanted}


def _reorder(*operands: int) -> Row:
    """Return the row of an operator that moves elements of these operands."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        form = wanted.form
        if form is not None and form.kind not in _FLAT:
            last = node.extent(0, -1)
            same = last is not None and (dims := node.sizes(node.result)) is not None and dims[-1:] == (last,)
            form = form if same and form.kind in ("coordinates", "places", "boxes", "rois") else None
        kept = Constraint(wanted.low, wanted.high, wanted.strength, wanted.avoid, form)
        return dict.fromkeys(operands, kept)

    return row


def _concat(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass to each operand its share of the coordinates."""
    form, last = wanted.form, node.sizes(node.result)
    axis = node.get("axis", 0)
    plain = wanted.within(wanted.low, wanted.high, avoid=wanted.avoid)
    found, start = {}, 0
    for number in range(len(node.input)):
        size = node.extent(number, axis)
        share = plain
        if (
            form is not None
            and form.kind in ("coordinates", "places")
            and last
            and axis in (-1, len(last) - 1)
            and size
        ):
            sizes = form.sizes[start : start + size]
            low = -min(sizes, default=1.0) if wanted.low < 0 else 0
            share = Constraint(
                low, min(sizes, default=1.0) - 1, wanted.strength, wanted.avoid, Form("coordinates", sizes)
            )
            start += size
        found[number] = share
    return found


def _rectify(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    low = wanted.low if wanted.low > 0 else -math.inf
    return {0: wanted.within(low, max(low, wanted.high))}


def _bound(node: NodeView, wanted: Constraint, least: float, most: float) -> Constraint:
    """Leave a side open that a bound keeps."""
    low = -math.inf if least >= wanted.low else wanted.low
    high = math.inf if most <= wanted.high else wanted.high
    return wanted.within(low, high, avoid=frozenset(value for value in wanted.avoid if least < value < most))


def _clip(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    least, most = limits_of(node, 1), limits_of(node, 2)
    low = node.get("min", least[0] if least else -math.inf)
    return {0: _bound(node, wanted, low, node.get("max", most[1] if most else math.inf))}


def _extremes(largest: bool) -> Row:
    """Return the row of Max or Min: what the constants among the operands keep, the others need not."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        limits = {number: limits_of(node, number) for number in range(len(node.input))}
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
        found[0] = suggest(form=Form("hides" if constants[0] else "mask"))
    return found


def _invert(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    other = {"mask": "hides", "hides": "mask"}
    kind = other.get(wanted.form.kind) if wanted.form is not None else None
    return {0: suggest(form=Form(kind))} if kind else {}


def _compare(sign: int) -> Row:
    """Return the row of a comparison with a constant: a choice is made on the side of `sign`."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        limits = limits_of(node, 1)
        chooses = wanted.form is not None and wanted.form.kind == "sparse"
        if not chooses or limits is None or limits[0] != limits[1]:
            return {}
        return {0: suggest(form=Form("sparse", (limits[0] - sign, 2 * sign)))}

    return row


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
    return {
        0: wanted.within(
            (wanted.low - zero) * scale, (wanted.high - zero) * scale, avoid=_each(wanted, scale, -zero * scale)
        )
    }


def _each(wanted: Constraint, factor: float, offset: float) -> frozenset[float]:
    return frozenset(round(value * factor + offset, 9) for value in wanted.avoid)


def _affine(node: NodeView) -> tuple[float, float] | None:
    """Return the scale and zero point of a quantisation by tensor."""
    scale, zero = limits_of(node, 1), limits_of(node, 2) if node.name(2) else (0.0, 0.0)
    if scale is None or zero is None or scale[0] != scale[1] or zero[0] != zero[1] or scale[0] <= 0:
        return None
    return scale[0], zero[0]


def _mean(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Pass an interval on to means and extremes: they are within it."""
    return {0: wanted.within(wanted.low, wanted.high)}


#: by operator, the constraints that those of a result put on its operands
RESULTS: dict[str, Row] = {
    **dict.fromkeys((*traits.MOVES, "Compress", "Pad", "ReverseSequence", "TopK", "Trilu"), _reorder(0)),
    "Identity": _keep, "Cast": _keep, "CastLike": _keep, "Dropout": _keep,
    "ScatterElements": _reorder(0, 2), "Scatter": _reorder(0, 2), "ScatterND": _reorder(0, 2), "Concat": _concat,
    "Where": _choose, "Not": _invert, **dict.fromkeys(("Greater", "GreaterOrEqual"), _compare(1)), **dict.fromkeys(("Less", "LessOrEqual"), _compare(-1)), "QuantizeLinear": _quantise, "DequantizeLinear": _dequantise, "Add": arithmetic(add), "Sub": arithmetic(subtract), "Mul": arithmetic(multiply),
    "Div": arithmetic(divide), "Neg": negate, "Abs": absolute, "Sqrt": root, "Relu": _rectify, "Clip": _clip,
    "Max": _extremes(True), "Min": _extremes(False), "ReduceMean": _mean, "ReduceMax": _mean,
    "ReduceMin": _mean, "MaxPool": _mean, "GlobalMaxPool": _mean, "Floor": _keep, "Ceil": _keep, "Round": _keep,
}  # fmt: skip
_COMPUTES = "Add Sub Mul Div Neg Abs Sqrt ReduceMean QuantizeLinear DequantizeLinear".split()
#: operators that give values on as they are, and compare them: integers may be of any size
MOVES = frozenset(RESULTS).difference(_COMPUTES) | frozenset(
    "Less LessOrEqual Greater GreaterOrEqual Equal And Or Not Xor Shape Size Sign ArgMax ArgMin NonZero Hardmax".split()
)
