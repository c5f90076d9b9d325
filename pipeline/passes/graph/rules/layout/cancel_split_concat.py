"""`cancel-split-concat`: drop concatenations of what was split, and splits of what was concatenated.

    concat(split(x))  →  x        split(concat(x, y))  →  x, y        concat(concat(x, y), z)  →  concat(x, y, z)

Slices count as parts of a split. Neighbouring parts of one value become one slice; a slice of a concatenation reads the
parts it takes alone, if it takes each of them whole, or is within one. A concatenation inside another one along the same
axis is flattened if nothing else reads it. Exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule
from .slices import Range, part_of, ranges_of, slice_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

_CONCAT, _SLICE = "relax.concat", "relax.strided_slice"


class CancelSplitConcat(Rule):
    """Remove pairs of splits and concatenations that undo each other."""

    name = "cancel-split-concat"
    summary = "drop concatenations of what was split, and splits of what was concatenated"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found = dict(super().replacements(graph))
        for var, _, producer in graph.items():
            if graph.operator(producer) == "relax.split" and (part := part_of(var, graph)):
                new = _parts_of_concat(*part, (), graph)
                if new is not None:
                    found[var] = new
        return found

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        name = graph.operator(call)
        if name == _SLICE and (ranges := ranges_of(call, graph)):
            concat = graph.call(call.args[0], _CONCAT)
            axis = _axis(concat, graph) if concat is not None else None
            along = [each for each in ranges if each.axis == axis]
            if along and along[0].step == 1:
                return _parts_of_concat(
                    call.args[0], along[0], tuple(each for each in ranges if each.axis != axis), graph
                )
        if name != _CONCAT or graph.shape(call) is None or not graph.fields(call.args[0]):
            return None
        axis = _axis(call, graph)
        before = graph.fields(call.args[0])
        fields = _join(_flatten(before, axis, graph), axis, graph)
        if len(fields) == 1:
            return fields[0]
        if len(fields) == len(before) and all(one is other for one, other in zip(fields, before)):
            return None
        return graph.op.concat(fields, axis)


def _axis(concat: Call, graph: Dataflow) -> int:
    return int(concat.attrs.axis or 0) % len(graph.static_shape(concat))


def _flatten(fields: tuple[Expr, ...], axis: int, graph: Dataflow) -> list[Expr]:
    """Return the operands with inner concatenations replaced by their own operands."""
    flat: list[Expr] = []
    for each in fields:
        inner = graph.call(each, _CONCAT)
        if inner is None or graph.uses(each) > 1 or graph.shape(inner) is None or _axis(inner, graph) != axis:
            flat.append(each)
        else:
            flat.extend(graph.fields(inner.args[0]) or [each])
    return flat


def _join(fields: list[Expr], axis: int, graph: Dataflow) -> list[Expr]:
    """Return the operands with one slice, or the whole, in place of neighbouring parts of one value."""
    runs: list[tuple[Expr, Range | None, list[Expr]]] = []
    for each in fields:
        part = part_of(each, graph)
        source, taken = part if part and part[1].axis == axis else (each, None)
        if runs and taken and (before := runs[-1][1]) and graph.same(runs[-1][0], source) and before.end == taken.begin:
            runs[-1] = source, Range(axis, before.begin, taken.end), [*runs[-1][2], each]
        else:
            runs.append((source, taken, [each]))
    joined: list[Expr] = []
    for source, taken, parts in runs:
        if len(parts) == 1 or taken is None:
            joined.extend(parts)
        elif taken.extent == graph.static_shape(source)[axis]:
            joined.append(source)
        elif all(graph.uses(part) == 1 for part in parts):
            joined.append(slice_value(source, (taken,), graph))
        else:
            joined.extend(parts)
    return joined


def _parts_of_concat(source: Expr, taken: Range, others: tuple[Range, ...], graph: Dataflow) -> Expr | None:
    """Return the parts of a concatenation within a range of it, cut by the ranges along other axes."""
    concat = graph.call(source, _CONCAT)
    if concat is None or graph.shape(concat) is None or _axis(concat, graph) != taken.axis:
        return None
    parts, begin = [], 0
    for each in graph.fields(concat.args[0]):
        end = begin + graph.static_shape(each)[taken.axis]
        if begin <= taken.begin and taken.end <= end:
            within = Range(taken.axis, taken.begin - begin, taken.end - begin)
            whole = within.extent == end - begin
            return slice_value(each, others if whole else (within, *others), graph)
        if end > taken.begin and begin < taken.end:
            if begin < taken.begin or taken.end < end:
                return None
            parts.append(slice_value(each, others, graph))
        begin = end
    return graph.op.concat(parts, taken.axis) if parts and graph.uses(source) == 1 else None
