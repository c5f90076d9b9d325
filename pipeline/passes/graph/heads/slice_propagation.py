"""Compute a part of a tensor alone: its slice propagated up through the operators that made it, to the constants.

    softmax(x · Q · (x · K)ᵀ)[head 2]  ─►  softmax(x · Q₂ · (x · K₂)ᵀ)          Q₂: the columns of head 2

Every operator does its share of the arithmetic, once; `rules/layout/sliced_operands.py` knows which. Imports TVM: only
imported once a graph is transformed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import relax
from tvm.ir import GenericConst

from ..rules import static_types
from ..rules.dataflow import Dataflow
from ..rules.layout.sliced_operands import slice_call
from ..rules.layout.slices import Range, along, part_of, part_shape, slice_constant
from ..rules.operators import RESHAPES

#: the axes left out are whole
Ranges = tuple[Range, ...]


class NotSliceable(Exception):
    """Signal a part that cannot be computed without the rest."""


class SlicePropagation:
    """Emit parts of values of a graph; `known` maps a variable to its new form."""

    def __init__(
        self, graph: Dataflow, emit: Callable[[relax.Expr], relax.Var], known: Callable[[relax.Var], relax.Expr]
    ):
        self._graph, self._emit, self._known = graph, emit, known
        self._parts: dict[tuple[relax.Var, Ranges], relax.Expr] = {}

    def part(self, expr: relax.Expr, ranges: Ranges) -> relax.Expr:
        """Emit the part of a tensor in `ranges`. Raises NotSliceable."""
        shape = shape_of(expr)
        ordered = sorted(ranges, key=lambda each: each.axis)
        ranges = tuple(each for each in ordered if each.drop or each.extent < shape[each.axis])
        if isinstance(expr, GenericConst):
            constant = slice_constant(expr, ranges, self._graph) if ranges else expr
            if constant is None:
                raise NotSliceable("a constant of a dtype foreign to numpy")
            return constant
        if not ranges:
            return self._known(expr)
        if (expr, ranges) not in self._parts:
            if all(shape[each.axis] == 1 for each in ranges):
                self._parts[expr, ranges] = self._reshape(self._known(expr), part_shape(shape, ranges))
            else:
                self._parts[expr, ranges] = self._build(expr, shape, ranges)
        return self._parts[expr, ranges]

    def _build(self, expr: relax.Expr, shape: Sequence[int], ranges: Ranges) -> relax.Expr:
        graph = self._graph
        if (taken := part_of(expr, graph)) is not None:
            source, outer = taken
            inner = along(ranges, outer.axis, outer.extent)
            moved = replace(inner, begin=outer.begin + inner.begin, end=outer.begin + inner.end)
            return self.part(source, (*(each for each in ranges if each.axis != outer.axis), moved))
        call, name = graph.value(expr), graph.operator(expr)
        if name in RESHAPES:
            before = ranges_before_reshape(shape_of(call.args[0]), shape, ranges)
            return self._reshape(self.part(call.args[0], before), part_shape(shape, ranges))
        position = graph.constant(call.args[1]) if name == "relax.take" and call.attrs.axis is not None else None
        if position is not None and not position.ndim:
            axis = int(call.attrs.axis)
            begin = int(position) % shape_of(call.args[0])[axis]
            others = (replace(each, axis=each.axis + (each.axis >= axis)) for each in ranges)
            return self.part(call.args[0], (*others, Range(axis, begin, begin + 1, drop=True)))
        new = slice_call(call, ranges, graph, self.part) if name else None
        if new is None:
            raise NotSliceable(name or "an input of the model, or a value of another form")
        return new if isinstance(new, relax.Var) else self._emit(new)

    def _reshape(self, expr: relax.Expr, shape: Sequence[int]) -> relax.Expr:
        return expr if shape_of(expr) == tuple(shape) else self._emit(relax.op.reshape(expr, shape))


def shape_of(expr: relax.Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor. Raises NotSliceable."""
    shape = static_types.shape_of(expr)
    if shape is None:
        raise NotSliceable("no tensor of static shape")
    return shape


def ranges_before_reshape(before: Sequence[int], after: Sequence[int], ranges: Ranges) -> Ranges:
    """Return the ranges before a reshape. Raises NotSliceable if one is not a single stretch of memory."""
    found: list[Range] = []
    for inner, outer in common_factors(before, after):
        if any(each.axis in outer for each in ranges):
            start, count = _stretch(
                [along(ranges, axis, after[axis]) for axis in outer], [after[axis] for axis in outer]
            )
            found += _ranges_of([before[axis] for axis in inner], inner, start, count)
    return tuple(found)


def common_factors(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the least groups of axes, before and after a reshape, of as many elements each."""
    groups: list[tuple[list[int], list[int]]] = []
    one = other = 0
    while one < len(before) or other < len(after):
        inner, outer = [one] if one < len(before) else [], [other] if other < len(after) else []
        one, other = one + len(inner), other + len(outer)
        while (left := math.prod(before[axis] for axis in inner)) != (
            right := math.prod(after[axis] for axis in outer)
        ):
            if left < right:
                inner.append(one)
                one += 1
            else:
                outer.append(other)
                other += 1
        groups.append((inner, outer))
    return groups


def _stretch(ranges: Sequence[Range], extents: Sequence[int]) -> tuple[int, int]:
    """Return first element and count of ranges in a group of axes. Raises NotSliceable if there are gaps."""
    start, count, single = 0, 1, True
    for each, extent in zip(ranges, extents):
        if (not single and each.extent < extent) or each.step > 1:
            raise NotSliceable("a part with gaps")
        start, count, single = start * extent + each.begin, count * each.extent, single and each.extent == 1
    return start, count


def _ranges_of(extents: Sequence[int], axes: Sequence[int], start: int, count: int) -> list[Range]:
    """Return the ranges of a stretch of elements in a group of axes. Raises NotSliceable if it is not a box."""
    found: list[Range] = []
    inner = math.prod(extents)
    for axis, extent in zip(axes, extents):
        inner //= extent
        first, start = divmod(start, inner)
        if start + count > inner:  # more than one row of the axes further in
            if start or count % inner:
                raise NotSliceable("a part that is not a box")
            return [*found, Range(axis, first, first + count // inner)]
        found.append(Range(axis, first, first + 1, drop=extent > 1))
    return found
