"""Schedule windows over planes, or over rows in a streaming region: vectors of a row, read where they lie.

    for … planes, groups of rows:
        acc[r, n, 0:16] = start, for all vectors n of a row        the last vector overlaps the one before
        for … rows of the data that a group needs, unrolled:
            for … taps and rows r that meet it:
                acc[r, n, 0:16] = max(acc[r, n, 0:16], data[row, x · stride + j])
        result[rows] = epilogue(acc)

Where several filters read a plane, and sums cover several planes (few channels of a group), each vector meets all filters
of a block, and planes are a loop around the rows of the data.

Products with padding are skipped, rows of the data under a condition; for a few rows, so are terms of a pooling. A vector that reaches into padding is one inside the
row, moved: 0 0 x[0:14] for the first of a window of five columns.

A copy of the rows, as rules/sliding_window.py makes, would be read before the processor has stored it. A sum may continue in
place: all vectors of a group are loaded before one is stored, those that an epilogue adds too if vectors overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ...memory import ALIGNMENT
from ...memory.liveness import aligned
from ...targets import Machine
from ...tir.expressions import loads, replaced
from ...tir.index_grid import Unknown
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ...tir.operators.row_element import moved
from ...tir.row_window import takes_a_row
from ...tir.workspace import held_bytes
from .axes.split_groups import split_groups
from .line_buffer import DataRow, LineBuffer
from .loop_peeling import has_skippable_padding, neutral_padding
from .rule import RuleResult
from .window_block import ENDS, Windows, best_block

_SERIAL, _VECTORIZED = 0, 2
#: lanes of the shortest vectors, and the largest stride: see codegen/expand/strided_loads.py
_FEW, _MOST_STRIDE = 4, 4
#: most taps of a window whose short vectors take no longer than the lines of rules/sliding_window.py, once these are copied
_SMALL = 16
#: most products of vectors unrolled for a row, and for several
_MOST_PRODUCTS, _PRODUCTS = 512, 256
#: how much longer vectors of columns are to be than those of filters
_GAIN = 1.5
#: most steps of a sum beside which storing vectors of filters, whose results are apart, takes longest
_FEW_STEPS = 32


#: first column of a vector, known or in a loop
_Start: TypeAlias = int | Expr


class _Place(NamedTuple):
    """Vector of a block: its filter, row and number, and the first column."""

    filter: int
    row: int
    vector: int
    start: _Start


#: make a statement of a place, its lane and accumulator
_Make = Callable[[_Place, Expr, TensorLoad], BufferStore]


def direct_windows(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of `kernel` by vectors of its rows: a Rule."""
    if not machine.transposes or machine.compact:
        return
    grouped = split_groups(kernel, machine.lanes)
    made = _made(inlined(kernel if grouped is None else grouped.kernel), machine)
    if grouped is not None:
        joined = None if made is None else grouped.joined(made, ())
        made = _made(inlined(kernel), machine, sums=False) if joined is None else joined[0]
    if made is not None:
        yield RuleResult(made, workspace=held_bytes(made))


def _made(kernel: PrimFunc, machine: Machine, *, sums: bool = True) -> PrimFunc | None:
    """Schedule a kernel; None for one of another form, or, without `sums`, one whose sums cover several planes."""
    try:
        direct = _Direct(kernel, machine)
        return direct.kernel() if sums or not direct.summed else None
    except Unknown:
        return None


class _Direct(LineBuffer):
    """Build the kernel: `starts` are the first columns of the vectors of a row, `real` the columns each tap of it has.

    `at_once` vectors of `count` rows are summed at a time, for `unrolled` filters of axis `filter`, if several share a plane.
    """

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel, machine)
        if self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise Unknown("the window is of other numbers")
        skips = self.padding is None or has_skippable_padding(self.window, [self.padding])
        self.fill = None if skips else neutral_padding(self.window, self.padding)  # of columns
        if not skips and (self.fill is None or not takes_a_row(kernel)):
            raise Unknown("the padding cannot be skipped")
        self.row, self.count = Var("group", "int64"), 1
        _, self.first, self.end, *_ = self._row_of(0)
        self.real = [self._real(j) for j in range(self.columns.taps)]
        most = min((end - first for first, end in self.real if first < end), default=0)
        self.lanes = machine.lanes
        while self.lanes > most:
            self.lanes //= 2
        if self.columns.stride > _MOST_STRIDE or self.lanes < _FEW:
            raise Unknown("a row is not whole vectors")
        self.starts = [*range(0, self.width - self.lanes, self.lanes), self.width - self.lanes]
        #: whether each row is to be computed once
        self.once = takes_a_row(kernel) or bool(loads(self.window.init.value))
        self.filter = self.filters[-1] if self.filters else None
        registers, taps = machine.registers_of(self.lanes), self.rows.taps * self.columns.taps
        if self.summed or self.filters:
            self.unrolled, self.at_once, most = self._block(registers, machine.lanes)
        else:
            if (
                taps > _SMALL
                and self.lanes == _FEW
                and len(self.starts) > self.chunks
                and not self.by_row
                and not takes_a_row(kernel)
            ):
                raise Unknown("padded lines take fewer products")
            self.unrolled, self.at_once = 1, len(self.starts)
            if self.at_once > registers - 2 and not self.once:
                self.at_once = max(min(registers // 2, _PRODUCTS // (ENDS * taps)), 1)
            # two rows share the vectors of a large window
            least = 2 if self.rows.taps > 1 and 2 * taps * self.at_once <= _MOST_PRODUCTS else 1
            most = max(min(registers // 2 // self.at_once, max(_PRODUCTS // (taps * self.at_once), least)), 1)
        held = aligned(self.unrolled * self.at_once * self.lanes * 4, ALIGNMENT)
        if (
            self.unrolled * self.at_once > registers - 2
            or held > machine.register_bytes
            or taps * self.at_once > _MOST_PRODUCTS
        ):
            raise Unknown("a row is more than registers hold, or than is unrolled")
        self.count = self._rows_at_once(most)
        self.acc = buffer_of("acc", (self.unrolled, self.count, self.at_once, self.lanes), self.dtype)
        self.values |= {axis: Var("plane", "int64") for axis in self.summed}

    def _block(self, registers: int, widest: int) -> tuple[int, int, int]:
        """Choose filters, vectors and rows summed at once, for vectors of filters no longer than vectors of columns."""
        filters = 1 if self.filter is None else self.axes[self.filter]
        taps, strides = (self.rows.taps, self.columns.taps), (self.rows.stride, self.columns.stride)
        steps = prod(taps) * prod(self.axes[axis] for axis in self.summed)
        if self.columns.stride > 1 or (
            steps > _FEW_STEPS and _lanes_of(filters, widest) * len(self.starts) * _GAIN > self.width
        ):
            raise Unknown("vectors of filters take less")
        block = best_block(
            Windows(self.height, len(self.starts), filters, taps, strides), registers, _PRODUCTS, whole=self.once
        )
        if block is None:
            raise Unknown("no block of rows fits registers")
        return block.filters, block.vectors, block.rows

    def _rows_at_once(self, most: int) -> int:
        """Choose the rows of a group; the last group may overlap the one before, unless sums continue or results replace data."""
        if self.once:
            return next(n for n in range(min(most, self.height), 0, -1) if self.height % n == 0)
        return -(-self.height // -(-self.height // most))

    def kernel(self) -> PrimFunc:
        stmt = sequence(list(self._parts()))
        if self.height > self.count:
            stmt = For(self.row, int64(0), int64(-(-self.height // self.count)), _SERIAL, stmt)
        for axis, var in reversed(self.loops.items()):
            count = self.unrolled if axis.same_as(self.filter) else 1
            stmt = For(var, int64(0), int64(self.axes[axis] // count), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.acc], self.original.attrs)

    def _parts(self) -> Iterator[Stmt]:
        """Yield the parts of a row, `at_once` vectors each; those that reach into no padding are a loop."""
        count = self.at_once
        parts = [self.starts[n : n + count] for n in range(0, len(self.starts), count)]
        parts[-1] = self.starts[-count:]
        inner = [n for n, part in enumerate(parts) if part[0] == n * count * self.lanes and self._is_inside(part)]
        for n, part in enumerate(parts):
            if len(inner) < 2 or n not in inner:
                yield self._part(part)
            elif n == inner[0]:
                var = Var("part", "int64")
                first = (var + n) * (count * self.lanes)
                yield For(
                    var, int64(0), int64(len(inner)), _SERIAL, self._part([first + (start - part[0]) for start in part])
                )

    def _is_inside(self, part: Sequence[int]) -> bool:
        return all(after == start + self.lanes for start, after in pairwise(part)) and all(
            first <= part[0] and part[-1] + self.lanes <= end for first, end in self.real
        )

    def _part(self, starts: Sequence[_Start]) -> Stmt:
        """Build the sums of the vectors at `starts`, of all rows and filters of a block."""
        window = sequence([stmt for row in range(self.count_of(self.count)) for stmt in self._row_added(row, starts)])
        for axis in reversed(self.summed):
            window = For(self.values[axis], int64(0), int64(self.axes[axis]), _SERIAL, window)
        ends = [self._finish, self._move] if self._continues else [self._store]
        return sequence(
            [*self._each(starts, self._start), window, *(stmt for made in ends for stmt in self._each(starts, made))]
        )

    def _real(self, j: int) -> tuple[int, int]:
        """Return first and end column of the result for which tap `j` of a row is not padding."""
        first, last = self.first - j * self.columns.step, self.end - 1 - j * self.columns.step
        return max(-(-first // self.columns.stride), 0), min(last // self.columns.stride + 1, self.width)

    def _each(self, starts: Sequence[_Start], made: _Make) -> Iterator[Stmt]:
        """Yield a statement for each vector of the rows and filters of a block."""
        for number in range(self.unrolled):
            for row in range(self.count):
                for vector, start in enumerate(starts):
                    yield self._vector(_Place(number, row, vector, start), made)

    def _vector(self, place: _Place, made: _Make) -> Stmt:
        lane = Var("lane", "int64")
        acc = tirx.BufferLoad(self.acc, [int64(place.filter), int64(place.row), int64(place.vector), lane])
        return For(lane, int64(0), int64(self.lanes), _VECTORIZED, made(place, lane, acc))

    def _values(self, place: _Place) -> dict[Var, Expr]:
        """Return the loops around the plane, with the filter of a place in a block, and its row."""
        values = {**self.values, self.y: self._row + place.row}
        if self.filter is not None:
            values[self.filter] = self.loops[self.filter] * self.unrolled + place.filter
        return values

    def _start(self, place: _Place, lane: Expr, acc: TensorLoad) -> BufferStore:
        assert isinstance(self.window.init, BufferStore)
        value = replaced(self.window.init.value, {**self._values(place), self.x: lane + place.start})
        return BufferStore(acc.source, value, acc.indices)

    def _row_of(self, number: int) -> DataRow:
        """Return a data row of a group."""
        return self.row_at(self._row * self.rows.stride + (replaced(self.rows.start, self.values) + number))

    def _row_added(self, number: int, starts: Sequence[_Start]) -> Iterator[Stmt]:
        """Yield the products of a data row with all its taps, for each result row and filter."""
        met = self.met_rows(number, self.count)
        if not met:
            return
        inside, _, _, _, element = self._row_of(number)
        parts = [
            self._vector(_Place(each, row, vector, start), partial(self._updated, i, j, element))
            for j, (first, end) in enumerate(self.real)
            for vector, start in enumerate(starts)
            if not isinstance(start, int) or (start < end and start + self.lanes > first)
            for row, i in met
            for each in range(self.unrolled)
        ]
        yield sequence(parts) if inside is None else IfThenElse(inside, sequence(parts), None)

    def _updated(
        self, i: int, j: int, element: Callable[[Expr], Expr], place: _Place, lane: Expr, acc: TensorLoad
    ) -> BufferStore:
        """Add the products of a tap to a vector of a row; its lanes move at padding."""
        tap = {var: int64(value) for var, value in ((self.rows.tap, i), (self.columns.tap, j)) if var is not None}
        product = replaced(self.window.body.value, {**self._values(place), **tap})
        first, end = self.real[j]
        begin = min(max(place.start, first), end - self.lanes) if isinstance(place.start, int) else place.start

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.window.body.buffer):
                return acc
            if each.source.same_as(self.data):
                found = element((lane + begin) * self.columns.stride + j * self.columns.step)
                if begin is place.start or begin == place.start:
                    return found
                found, column = moved(found, begin - place.start), lane + place.start
                return (
                    found
                    if self.fill is None
                    else tirx.Select(tirx.And(int64(first) <= column, column < int64(end)), found, self.fill)
                )
            return each

        return BufferStore(acc.source, tvm_ffi.structural_map(product, (TensorLoad, load)), acc.indices)

    @property
    def _continues(self) -> bool:
        """Return whether the epilogue may read an element of the result that an overlapping vector writes: a sum so far."""
        if (
            self.last is None
            or not self.once
            or self.width % self.lanes == 0
            or str(self.result.ty.dtype) != self.dtype
        ):
            return False
        shape = [int(extent) for extent in self.result.ty.shape]
        return any([int(extent) for extent in load.source.ty.shape] == shape for load in self.read_late)

    def _store(self, place: _Place, lane: Expr, acc: TensorLoad) -> BufferStore:
        indices = self._indices(place, lane)
        return BufferStore(self.result, self.epilogue(acc, indices), indices)

    def _finish(self, place: _Place, lane: Expr, acc: TensorLoad) -> BufferStore:
        return BufferStore(acc.source, self.epilogue(acc, self._indices(place, lane)), acc.indices)

    def _move(self, place: _Place, lane: Expr, acc: TensorLoad) -> BufferStore:
        return BufferStore(self.result, acc, self._indices(place, lane))

    def _indices(self, place: _Place, lane: Expr) -> list[Expr]:
        values = self._values(place)
        return [*(replaced(index, values) for index in self.outer), self._row + place.row, lane + place.start]

    @property
    def _row(self) -> Expr:
        """Return the first row of a group."""
        return self.first_row(self.row, self.count)


def _lanes_of(filters: int, widest: int) -> int:
    """Return the lanes of vectors of so many filters: of enough filters the last vector overlaps the one before."""
    return widest if filters >= widest else filters & -filters
