"""Build schedules of a sum of integer products: loops, elements with their padding, results, the layout of the weight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import For, IntImm, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import conjuncts, replaced, uses, with_loads
from ....tir.index_grid import NoMatch, holds_along
from ....tir.loop_nests import buffer_of, int64, kernel_of
from ...weights.repack_sums import RepackSums
from ..line_buffer import loop_of
from .integer_sum import IntegerSum, less
from .loops import load_neighbours
from .micro_kernel import MicroKernel

#: values of axes
Axes = Mapping[Var, Expr]
_SERIAL = 0


class SumBuilder(IntegerSum):
    """Take over the parts of a match, for the schedule of one form. Raises NoMatch for others.

    Windows have to start at the first column of the data, unless `anywhere` says that rows need not be padded.
    """

    anywhere = False
    #: the axis of `channels` side by side, if any
    c: Var | None = None
    channels: int = 1
    #: the weight as it is repacked, and how
    packed: Var
    repack: RepackSums
    repacks: tuple[RepackSums, ...] = ()

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        vars(self).update(vars(form))
        self.machine, self.row = machine, row
        starts = isinstance(self.first, IntImm) and int(self.first) == 0
        if not starts and not (self.anywhere and self.padding is None):
            raise NoMatch("places are not by stride and step")

    def pairable(self) -> list[Var]:
        """List the summed axes besides the tap that are an index of the data."""
        others = [var for var in self.summed if not var.same_as(self.tap)]
        return [var for var in others if any(var.same_as(each) for each in self.indices)]

    def outer(self) -> dict[Var, Expr]:
        """Return loop variables of the axes around the places and the filters, 0 for an axis of one."""
        others = (*self.summed, self.f, self.x)
        spatial = [var for var in self.axes if var not in others]
        return {var: Var(var.name, "int64") if self.axes[var] > 1 else int64(0) for var in spatial}

    def loops_over(self, axes: Iterable[Var]) -> dict[Var, Expr]:
        """Return a loop variable for each axis."""
        return {var: Var(var.name, "int64") for var in axes}

    def nest(self, loops: Axes, body: Stmt, kind: int = _SERIAL) -> Stmt:
        """Loop over axes around a statement."""
        for var, loop in reversed(list(loops.items())):
            body = body if isinstance(loop, IntImm) else For(loop, int64(0), int64(self.axes[var]), kind, body)
        return body

    def at_tap(self, tap: Expr | int) -> dict[Var, Expr]:
        """Return the value of the tap, if there is one."""
        return {} if self.tap is None else {self.tap: int64(tap) if isinstance(tap, int) else tap}

    def span(self, places: int) -> int:
        """Count the columns of the data that so many neighbouring places read."""
        return (places - 1) * self.stride + (self.taps - 1) * self.step + 1

    def values_of(self, columns: int) -> int:
        """Count the values of a line of so many columns."""
        return columns * self.channels

    def columns_of(self, places: int) -> list[int]:
        """List the columns that so many neighbouring places read, counted from their first."""
        return sorted({place * self.stride + tap * self.step for place in range(places) for tap in range(self.taps)})

    def result(self, sum_: Expr, own: dict[Var, Expr]) -> tuple[Var, Expr, list[Expr]]:
        """Return the buffer, the value and the indices to store for a sum, of the axes' values `own`."""
        if self.last is None:
            return self.original.params[-1], sum_, [replaced(each, own) for each in self.total.body.indices]
        values = {var: replaced(value, own) for var, value in self.epilogue.items()}
        value = replaced(with_loads(self.last.body.value, self.total.body.buffer, sum_), values)
        return self.last.body.buffer, value, [replaced(each, values) for each in self.last.body.indices]

    def in_rows(self, body: Stmt, outer: dict[Var, Expr], own: Sequence[Var]) -> PrimFunc:
        """Build the kernel: the `outer` loops around `body`, and buffers of its `own`."""
        params = list(self.original.params)
        if self.repacks:
            params[self.number] = self.packed
        return kernel_of(params, [self.nest(outer, body)], own, self.original.attrs)

    def pack(self, width: int, order: str, run: Sequence[int], group: int, **others: Any) -> None:
        """Read the weight in blocks of `width` filters: see RepackSums."""
        source = self.weight.source
        extents = tuple(map(int, source.ty.shape))
        self.repack = RepackSums(
            self.number, self.filters, width, order=order, run=tuple(run), extents=extents, group=group, **others
        )
        self.packed = buffer_of(source.name, self.repack.shape(extents), str(source.ty.dtype))
        self.repacks = (self.repack,)

    def start_of(self, block: Expr, filter_: Expr) -> Expr:
        """Return the start of the sums of a filter of a block."""
        return load_neighbours(self.packed, [block], filter_ * 4, 4, self.repack.starts)

    def weight_places(self, axes: Iterable[Var]) -> list[int]:
        """List the dimensions of the weight that axes are an index of, one each. Raises NoMatch for others."""
        found = [[place for place, index in enumerate(self.weight.indices) if index.same_as(var)] for var in axes]
        if any(len(places) != 1 for places in found):
            raise NoMatch("the weight is not indexed by axes")
        return [place for (place,) in found]

    def row_cost(self, cost: Callable[[int], float], high: int) -> float:
        """Add up the costs of a row's tiles, of `high` places each and of the rest."""
        whole, rest = divmod(self.axes[self.x], high)
        return whole * cost(high) + (cost(rest) if rest else 0)

    def cheapest_tile(
        self,
        widths: Sequence[int],
        rows: Sequence[int],
        cost: Callable[[int, int], float],
        fits: Callable[[int, int], bool],
    ) -> tuple[int, int]:
        """Choose the filters and the places of a tile that fits with the fewest instructions, by its `cost`."""
        found = [
            (self.row_cost(partial(cost, width), high) / width, width, high)
            for width, high in product(widths, rows)
            if self.axes[self.f] % width == 0 and high <= self.axes[self.x] and fits(width, high)
        ]
        if not found:
            raise NoMatch("the filters are not whole vectors")
        return min(found)[1:]

    def raw(self) -> TensorLoad:
        """Return the load of a value, by the axes of the sum."""
        return self._raw if self.padding is None else replaced(self._raw, self.padding_axes(self.indices))

    def raw_at(self, values: Axes, column: Expr) -> TensorLoad:
        """Return the load of a value that is not padding: `column` counts from the first one of the window of place 0."""
        indices = self.at(values, column)
        if self.padding is None:
            return tirx.BufferLoad(self.data.source, indices)
        return replaced(self._raw, self.padding_axes(indices))

    def element(self, values: Axes, column: Expr) -> Expr:
        """Return a value that is not padding."""
        if self.padding is not None:
            return replaced(self.inside, self.padding_axes(self.at(values, column)))
        value = with_loads(self.value, self.data.source, self.raw_at(values, column))
        return replaced(value, {**self.units, **values})

    def on_line(self, values: Axes, column: Expr, at: Expr) -> tuple[dict[Var, Expr], Expr]:
        """Return the axes and the column of the value `at` so many from a column: channels of each are side by side."""
        if self.c is None:
            return dict(values), column + at
        channel = values.get(self.c, int64(0)) + tirx.floormod(at, self.channels)
        return {**values, self.c: channel}, column + tirx.floordiv(at, self.channels)

    def row_inside(self, values: Axes, conditions: Sequence[Expr] | None = None) -> Expr | None:
        """Return the condition for a row not to be padding, None if all are inside; or those of its `conditions`."""
        rows = self.row_conditions() if conditions is None else conditions
        axes = self.padding_axes(self.at(values, int64(0))) if rows else {}
        return tirx.all(*(replaced(each, axes) for each in rows)) if rows else None

    def row_conditions(self) -> list[Expr]:
        """List the conditions not to be padding that depend on other axes than that of columns."""
        if self.padding is None:
            return []
        axis = self.padding.iter_vars[self.along].var
        return [each for each in conjuncts(self.border) if not uses(each, axis)]

    def conditions_along(self, var: Var) -> list[Expr]:
        """List these conditions that depend on an axis."""
        axes = [] if self.padding is None else zip(self.padding.iter_vars, self.indices)
        along = [axis.var for axis, index in axes if uses(index, var) and int(axis.dom.extent) > 1]
        return [each for each in self.row_conditions() if any(uses(each, axis) for axis in along)]

    def columns(self, *, read: bool = True) -> tuple[int, int]:
        """Return the first and the end of the columns that are not padding; of all in memory unless only those `read` count.

        Raises NoMatch if others lie between.
        """
        whole = self.span(self.axes[self.x])
        if self.padding is None:
            return 0, whole
        axis = self.padding.iter_vars[self.along]
        across = [each for each in conjuncts(self.border) if uses(each, axis.var)]
        others = [other.var for other in self.padding.iter_vars if not other.var.same_as(axis.var)]
        if any(uses(each, other) for each in across for other in others):
            raise NoMatch("the padding of columns depends on other axes")
        there = np.ones(int(axis.dom.extent), bool)
        for each in across:
            there &= holds_along(each, axis.var, len(there))
        low, high = int(there.argmax()), len(there) - int(there[::-1].argmax())
        if not there.any() or not there[low:high].all():
            raise NoMatch("the columns are not contiguous")
        return low, min(high, whole) if read else high

    def bands(self, size: int, build: Callable[[Expr, int, tuple[int, int]], Stmt]) -> list[Stmt]:
        """Build bands of `size` places: from its first place, its places, and its columns that are not padding.

        Bands without padding are a loop.
        """
        whole, rest = divmod(self.axes[self.x], size)
        low, high = self.columns()

        def inside(start: int, count: int) -> tuple[int, int]:
            span, first = self.span(count), start * self.stride
            begin = min(max(low - first, 0), span)
            return begin, max(min(high - first, span), begin)

        inner = [n for n in range(whole) if inside(n * size, size) == (0, self.span(size))]
        first, end = (inner[0], inner[-1] + 1) if inner else (whole, whole)
        if first + whole - end > 2:
            raise NoMatch("the padding is wider than a band")
        alone = [(n * size, size) for n in (*range(first), *range(end, whole))]
        alone += [(whole * size, rest)] if rest else []
        parts = [build(int64(start), count, inside(start, count)) for start, count in alone]
        if first < end:
            band = Var("band", "int64")
            parts.append(loop_of(band, end - first, build((band + first) * size, size, (0, self.span(size)))))
        return parts

    def bytes_(self) -> tuple[Expr, str]:
        """Return the zero point and the dtype of data of bytes. Raises NoMatch for other factors."""
        zero, value = less(self.inside)
        if not isinstance(value, tirx.Cast) or not isinstance(value.value, TensorLoad):
            raise NoMatch("the data is not a number less its zero point")
        dtype = str(value.value.ty.dtype)
        if dtype not in ("int8", "uint8") or str(self.weight.source.ty.dtype) != "int8":
            raise NoMatch("the factors are not bytes")
        return zero, dtype

    def at(self, values: Axes, column: Expr) -> list[Expr]:
        """Return the indices of a value of the data, or of its padded form."""
        own = {**self.units, **values, self.x: int64(0), **self.at_tap(0)}
        indices = [replaced(index, own) for index in self.indices]
        indices[self.along] = indices[self.along] + column
        return indices

    def padding_axes(self, indices: Sequence[Expr]) -> dict[Var, Expr]:
        """Return the axes of the padding for an element of its result."""
        assert self.padding is not None
        return {axis.var: index for axis, index in zip(self.padding.iter_vars, indices)}
