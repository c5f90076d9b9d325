"""Compute a part of a tensor alone: its slice propagated up through the operators that made it, to the constants.

    softmax(x · Q · (x · K)ᵀ)[head 2]  ─►  softmax(x · Q₂ · (x · K₂)ᵀ)          Q₂: the columns of head 2

Every operator does its share of the arithmetic, once; `rules/layout/sliced_operands.py` knows which. Imports TVM: only
imported once a graph is transformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tvm import relax
from tvm.ir import GenericConst

from ..rules import static_types
from ..rules.dataflow import Dataflow
from ..rules.layout.sliced_operands import slice_call
from ..rules.layout.slices import Range, along, part_of, part_shape, slice_constant

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
