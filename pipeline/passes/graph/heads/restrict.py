"""Compute a part of a tensor alone: its slice pushed up through the operators that made it, to the constants.

    softmax(x · Q · (x · K)ᵀ)[head 2]  ─►  softmax(x · Q₂ · (x · K₂)ᵀ)          Q₂: the columns of head 2

Every operator does its share of the arithmetic, once. Imports TVM: only imported once a graph is transformed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

#: operators of one element each of their operands, which are broadcast
_ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        "abs", "add", "divide", "erf", "exp", "log", "maximum", "minimum", "multiply", "negative", "power", "rsqrt",
        "sigmoid", "sqrt", "square", "subtract", "tanh", "where", "nn.gelu", "nn.gelu_tanh", "nn.relu", "nn.silu",
    )
)  # fmt: skip
RESHAPES = frozenset(f"relax.{name}" for name in ("reshape", "flatten", "expand_dims", "squeeze"))


class Whole(Exception):
    """Signal a part that cannot be computed without the rest."""


class AxisRange(NamedTuple):
    """Elements `start` up to `start` + `size` of an axis; `drop` leaves out the axis, of one element."""

    start: int
    size: int
    drop: bool = False


#: by axis; the other axes are whole
Ranges = Mapping[int, AxisRange]


class Restriction:
    """Emit parts of values; `values` are the bindings of their variables, `known` maps a variable to its new form."""

    def __init__(
        self,
        values: Mapping[relax.Var, relax.Expr],
        emit: Callable[[relax.Expr], relax.Var],
        known: Callable[[relax.Var], relax.Expr],
    ):
        self._values, self._emit, self._known = values, emit, known
        self._parts: dict[tuple[relax.Var, tuple[tuple[int, AxisRange], ...]], relax.Expr] = {}

    def part(self, expr: relax.Expr, ranges: Ranges) -> relax.Expr:
        """Emit the part of a tensor in `ranges`. Raises Whole."""
        shape = shape_of(expr)
        ranges = {axis: each for axis, each in sorted(ranges.items()) if each.drop or each.size < shape[axis]}
        if isinstance(expr, GenericConst):
            return _constant_part(expr, ranges)
        if not ranges:
            return self._known(expr)
        place = (expr, tuple(ranges.items()))
        if place not in self._parts:
            if all(shape[axis] == 1 for axis in ranges):
                self._parts[place] = self._reshape(self._known(expr), restricted_shape(shape, ranges))
            else:
                self._parts[place] = self._build(self._values.get(expr), shape, ranges)
        return self._parts[place]

    def _build(self, value: relax.Expr | None, shape: Sequence[int], ranges: Ranges) -> relax.Expr:
        if isinstance(value, relax.Var):
            return self.part(value, ranges)
        if isinstance(value, relax.TupleGetItem):
            return self._restrict_split(self._values.get(value.tuple_value), value.index, ranges)
        if not isinstance(value, relax.Call):
            raise Whole("an input of the model, or a value of another form")
        name, args = str(getattr(value.op, "name", "")), list(value.args)
        if name in _ELEMENTWISE:
            return self._like(value, [self._broadcast(each, len(shape), ranges) for each in args])
        if name in RESHAPES:
            return self._reshape(
                self.part(args[0], _ranges_before_reshape(shape_of(args[0]), shape, ranges)),
                restricted_shape(shape, ranges),
            )
        if name == "relax.permute_dims":
            return self._restrict_permutation(value, ranges)
        if name == "relax.nn.softmax":
            return self._softmax(value, len(shape), ranges)
        if name == "relax.matmul":
            return self._matmul(value, len(shape), ranges)
        if name == "relax.take" and shape_of(args[1]) == () and value.attrs.axis is not None:
            axis, index = int(value.attrs.axis), self._number(args[1])
            moved = {n + (n >= axis): each for n, each in ranges.items()}
            return self.part(args[0], moved | {axis: AxisRange(index % shape_of(args[0])[axis], 1, drop=True)})
        raise Whole(name)

    def _like(self, call: relax.Call, args: Sequence[relax.Expr]) -> relax.Var:
        return self._emit(relax.Call(call.op, list(args), call.attrs, call.ty_args))

    def _reshape(self, expr: relax.Expr, shape: tuple[int, ...]) -> relax.Expr:
        return expr if shape_of(expr) == shape else self._emit(relax.op.reshape(expr, shape))

    def _broadcast(self, expr: relax.Expr, rank: int, ranges: Ranges) -> relax.Expr:
        """Restrict an operand that is broadcast to `rank` axes."""
        shape = shape_of(expr)
        missing = rank - len(shape)
        own: dict[int, AxisRange] = {}
        for axis, each in ranges.items():
            if axis >= missing and shape[axis - missing] > 1:
                own[axis - missing] = each
            elif axis >= missing and each.drop:
                own[axis - missing] = AxisRange(0, 1, drop=True)
        return self.part(expr, own)

    def _restrict_permutation(self, call: relax.Call, ranges: Ranges) -> relax.Expr:
        rank = len(shape_of(call.args[0]))
        axes = (
            [int(each) % rank for each in call.attrs.axes] if call.attrs.axes is not None else list(range(rank))[::-1]
        )
        found = self.part(call.args[0], {axes[axis]: each for axis, each in ranges.items()})
        left = [axis for n, axis in enumerate(axes) if n not in ranges or not ranges[n].drop]
        order = [sorted(left).index(axis) for axis in left]
        shape = shape_of(found)
        moved = [axis for axis in order if shape[axis] > 1]
        if moved == sorted(moved):
            return self._reshape(found, tuple(shape[axis] for axis in order))
        return self._emit(relax.op.permute_dims(found, order))

    def _softmax(self, call: relax.Call, rank: int, ranges: Ranges) -> relax.Expr:
        axis = int(call.attrs.axis) % rank
        if axis in ranges:
            raise Whole("a softmax along the axis")
        return self._emit(relax.op.nn.softmax(self.part(call.args[0], ranges), axis - _count_dropped(ranges, axis)))

    def _matmul(self, call: relax.Call, rank: int, ranges: Ranges) -> relax.Expr:
        one, other = call.args
        if min(len(shape_of(one)), len(shape_of(other))) < 2 or any(ranges[n].drop for n in ranges if n >= rank - 2):
            raise Whole("a product with a vector")
        batch = {axis: each for axis, each in ranges.items() if axis < rank - 2}
        rows, columns = ({n: each for n, each in ranges.items() if n == axis} for axis in (rank - 2, rank - 1))
        # each row of the product needs all of the second operand: it is made first, so that the rows may be streamed
        second = self._broadcast(other, rank, batch | columns)
        return self._like(call, [self._broadcast(one, rank, batch | rows), second])

    def _restrict_split(self, call: relax.Expr | None, index: int, ranges: Ranges) -> relax.Expr:
        if not isinstance(call, relax.Call) or str(getattr(call.op, "name", "")) != "relax.split":
            raise Whole("one of several results")
        shape, points = shape_of(call.args[0]), call.attrs.indices_or_sections
        axis = int(call.attrs.axis) % len(shape)
        if not hasattr(points, "__len__"):
            length = -(-shape[axis] // int(points))
            start, end = index * length, min((index + 1) * length, shape[axis])
        else:
            start, end = ([0, *map(int, points), shape[axis]])[index : index + 2]
        inner = ranges.get(axis, AxisRange(0, end - start))
        return self.part(call.args[0], {**ranges, axis: inner._replace(start=start + inner.start)})

    def _number(self, expr: relax.Expr) -> int:
        """Evaluate a scalar index, as the importer writes it: where(i < 0, i + extent, i)."""
        expr = self._values.get(expr, expr) if isinstance(expr, relax.Var) else expr
        if isinstance(expr, GenericConst):
            return int(expr.value.numpy())
        name = str(getattr(getattr(expr, "op", None), "name", ""))
        if name == "relax.where":
            return self._number(expr.args[1 if self._number(expr.args[0]) else 2])
        if name == "relax.less":
            return int(self._number(expr.args[0]) < self._number(expr.args[1]))
        raise Whole("an index that is not constant")


def shape_of(expr: relax.Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor. Raises Whole."""
    shape = getattr(expr.ty, "shape", None)
    if shape is None:
        raise Whole("no tensor of static shape")
    try:
        return tuple(int(extent) for extent in shape)
    except TypeError as error:
        raise Whole("a dynamic shape") from error


def restricted_shape(shape: Sequence[int], ranges: Ranges) -> tuple[int, ...]:
    """Return the shape of the part of a tensor."""
    kept = (
        (ranges[n].size if n in ranges else extent)
        for n, extent in enumerate(shape)
        if n not in ranges or not ranges[n].drop
    )
    return tuple(kept)


def _constant_part(constant: GenericConst, ranges: Ranges) -> relax.Expr:
    if not ranges:
        return constant
    array = constant.value.numpy()
    at = tuple(
        slice(None)
        if n not in ranges
        else ranges[n].start
        if ranges[n].drop
        else slice(ranges[n].start, sum(ranges[n][:2]))
        for n in range(array.ndim)
    )
    return relax.const(np.array(array[at], order="C"), str(constant.value.dtype))


def _count_dropped(ranges: Ranges, axis: int) -> int:
    return sum(each.drop for place, each in ranges.items() if place < axis)


def _ranges_before_reshape(before: Sequence[int], after: Sequence[int], ranges: Ranges) -> dict[int, AxisRange]:
    """Return the ranges before a reshape. Raises Whole if one is not a single stretch of memory."""
    found: dict[int, AxisRange] = {}
    for inner, outer in common_factors(before, after):
        if any(axis in ranges for axis in outer):
            start, count = _stretch([after[axis] for axis in outer], [ranges.get(axis) for axis in outer])
            found |= _ranges_of([before[axis] for axis in inner], inner, start, count)
    return found


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


def _stretch(extents: Sequence[int], ranges: Sequence[AxisRange | None]) -> tuple[int, int]:
    """Return first element and count of ranges in a group of axes. Raises Whole if there are gaps."""
    start, count, single = 0, 1, True
    for extent, each in zip(extents, ranges):
        each = each or AxisRange(0, extent)
        if not single and each.size < extent:
            raise Whole("a part with gaps")
        start, count, single = start * extent + each.start, count * each.size, single and each.size == 1
    return start, count


def _ranges_of(extents: Sequence[int], axes: Sequence[int], start: int, count: int) -> dict[int, AxisRange]:
    """Return the ranges of a stretch of elements in a group of axes. Raises Whole if it is not a box."""
    found: dict[int, AxisRange] = {}
    inner = math.prod(extents)
    for axis, extent in zip(axes, extents):
        inner //= extent
        first, start = divmod(start, inner)
        if start + count > inner:  # more than one row of the axes further in
            if start or count % inner:
                raise Whole("a part that is not a box")
            found[axis] = AxisRange(first, count // inner)
            return found
        found[axis] = AxisRange(first, 1, drop=extent > 1)
    return found
