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
from contextlib import suppress
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeAlias

from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ....memory import ALIGNMENT
from ....memory.liveness import aligned
from ....support.divisors import divisors
from ....targets import Machine
from ....tir.expressions import loads, replaced
from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.moved import moved
from ....tir.row_window import takes_a_row
from ..axes.split_groups import split_groups
from ..fused_sum import assign, block_start, sum_rule
from ..line_buffer import line_lanes, loop_of
from ..sliding_plane import DataRow, Plane
from .window_block import ENDS, best_block

_SERIAL = 0
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
#: rows of the result that need a row of the data, each with its tap, and the row of the data
_Met: TypeAlias = tuple[list[tuple[int, int]], DataRow]


class Place(NamedTuple):
    """Vector of a block: its filter, row and number, and the first column."""

    filter: int
    row: int
    vector: int
    start: _Start


#: make a statement of a place, its lane and accumulator
_Make = Callable[[Place, Expr, TensorLoad], Stmt]


@sum_rule
def direct_windows(kernel: PrimFunc, machine: Machine) -> PrimFunc:
    """Schedule `kernel` by vectors of its rows: a Rule."""
    grouped = split_groups(kernel, machine.lanes)
    if grouped is not None:
        with suppress(NoMatch):
            joined = grouped.joined(_Direct(inlined(grouped.kernel), machine).kernel(), ())
            if joined is not None:
                return joined[0]
    direct = _Direct(inlined(kernel), machine)
    if grouped is not None and direct.summed:
        raise NoMatch("the sums of a group cover several planes")
    return direct.kernel()


class _Direct(Plane):
    """Build a kernel of sums in registers: of data whose columns `first` up to `end` are real, `real` for each tap of a row.

    `at_once` vectors of `count` rows are summed at a time, for `unrolled` filters of axis `filter`, if several share a plane;
    `starts` are the first columns of the vectors of a row, all inside it.
    """

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel)
        if self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise NoMatch("the window is of other numbers")
        self.row, self.count, self.unrolled = Var("group", "int64"), 1, 1
        _, self.first, self.end, self.zero, _ = self._row_of(0)
        self.real = [self._real(j) for j in range(self.columns.taps)]
        #: whether each row is to be computed once
        self.once = takes_a_row(kernel) or bool(loads(self.sum.init.value))
        self.filter = self.filters[-1] if self.filters else None
        self._plan(machine)
        self.acc = buffer_of("acc", (self.unrolled, self.count, self.at_once, self.lanes), self.dtype)
        self.values |= {axis: Var("plane", "int64") for axis in self.summed}
        if self.filter is not None:
            self.trips[self.filter] //= self.unrolled
        if not self.met:
            raise NoMatch("all rows are padding")

    def _plan(self, machine: Machine) -> None:
        """Choose `lanes`, `starts`, and the block summed at once. Raises NoMatch where another rule does better."""
        if not machine.transposes or machine.compact:
            raise NoMatch("vectors are not moved")
        plain = self.padding is not None and isinstance(self.padding.body.value.args[1], TensorLoad)
        if not self.skips_padding and not (self.pools and plain and takes_a_row(self.original)):
            raise NoMatch("the padding cannot be skipped")
        most = min((end - first for first, end in self.real if first < end), default=0)
        self.lanes = machine.lanes
        while self.lanes > most:
            self.lanes //= 2
        if self.columns.stride > _MOST_STRIDE or self.lanes < _FEW:
            raise NoMatch("a row is not whole vectors")
        self.starts = [*range(0, self.width - self.lanes, self.lanes), self.width - self.lanes]
        registers, taps = machine.registers_of(self.lanes), self.rows.taps * self.columns.taps
        if self.summed or self.filters:
            self.unrolled, self.at_once, most = self._block(registers, machine.lanes)
        else:
            lines = -(-self.width // line_lanes(self.width, machine))
            if (
                taps > _SMALL
                and self.lanes == _FEW
                and len(self.starts) > lines
                and not self.by_row
                and not takes_a_row(self.original)
            ):
                raise NoMatch("padded lines take fewer products")
            self.at_once = len(self.starts)
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
            raise NoMatch("a row is more than registers hold, or than is unrolled")
        # the last group may overlap the one before, unless sums continue or results replace data
        self.count = max(divisors(self.height, most)) if self.once else -(-self.height // -(-self.height // most))

    def _block(self, registers: int, widest: int) -> tuple[int, int, int]:
        """Choose filters, vectors and rows summed at once, for vectors of filters no longer than vectors of columns."""
        filters = 1 if self.filter is None else self.axes[self.filter]
        steps = self.rows.taps * self.columns.taps * prod(self.axes[axis] for axis in self.summed)
        if self.columns.stride > 1 or (
            steps > _FEW_STEPS and _lanes_of(filters, widest) * len(self.starts) * _GAIN > self.width
        ):
            raise NoMatch("vectors of filters take less")
        block = best_block(self, len(self.starts), filters, registers, _PRODUCTS, whole=self.once)
        if block is None:
            raise NoMatch("no block of rows fits registers")
        return block

    def kernel(self) -> PrimFunc:
        stmt = loop_of(self.row, -(-self.height // self.count), sequence(list(self._parts())))
        return self.kernel_around(stmt, [self.acc])

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
                yield loop_of(var, len(inner), self._part([first + (start - part[0]) for start in part]))

    def _is_inside(self, part: Sequence[int]) -> bool:
        return all(after == start + self.lanes for start, after in pairwise(part)) and all(
            first <= part[0] and part[-1] + self.lanes <= end for first, end in self.real
        )

    def _part(self, starts: Sequence[_Start]) -> Stmt:
        """Build the sums of the vectors at `starts`, of all rows and filters of a block."""
        window = sequence(list(self._added(starts)))
        for axis in reversed(self.summed):
            window = For(self.values[axis], int64(0), int64(self.axes[axis]), _SERIAL, window)
        # computed before anything is stored where an epilogue may read what another vector writes
        stored = [self._finish, self._move] if self._continues and self.last is not None else [self._store]
        return sequence([
            *self._each(starts, self._start), window, *(stmt for make in stored for stmt in self._each(starts, make))
        ])  # fmt: skip

    def _real(self, j: int) -> tuple[int, int]:
        """Return first and end column of the result for which tap `j` of a row is not padding."""
        first, last = self.first - j * self.columns.step, self.end - 1 - j * self.columns.step
        return max(-(-first // self.columns.stride), 0), min(last // self.columns.stride + 1, self.width)

    def _each(self, starts: Sequence[_Start], make: _Make) -> Iterator[Stmt]:
        """Yield a statement for each vector of the rows and filters of a block."""
        for number in range(self.unrolled):
            for row in range(self.count):
                for vector, start in enumerate(starts):
                    yield self._vector(Place(number, row, vector, start), make)

    def _vector(self, place: Place, make: _Make) -> Stmt:
        return self.vector(place[:3], partial(make, place))

    def _values(self, place: Place) -> dict[Var, Expr]:
        """Return the loops around the plane, with the filter of a place in a block, and its row."""
        values = {**self.values, self.y: self._row + place.row}
        if self.filter is not None:
            values[self.filter] = self.loops[self.filter] * self.unrolled + place.filter
        return values

    def _start(self, place: Place, lane: Expr, acc: TensorLoad) -> Stmt:
        return assign(acc, replaced(self.sum.init.value, {**self._values(place), self.x: lane + place.start}))

    def _row_of(self, number: int) -> DataRow:
        """Return a data row of a group."""
        return self.row_at(self._row * self.rows.stride + (replaced(self.rows.start, self.values) + number))

    @cached_property
    def met(self) -> list[_Met]:
        """List the rows of the data that a group needs and that are not known to be padding."""
        analyzer, found = sym.Analyzer(), []
        for number in range(self.count_of(self.count)):
            met = self.met_rows(number, self.count)
            row = self._row_of(number) if met else None
            if row is None or (row.inside is not None and analyzer.can_prove_equal(row.inside, False)):
                continue
            known = row.inside is None or analyzer.can_prove(row.inside)
            found.append((met, row._replace(inside=None) if known else row))
        return found

    def _added(self, starts: Sequence[_Start]) -> Iterator[Stmt]:
        """Yield the products of rows of the data with all their taps, for each result row and filter."""
        for met, data in self.met:
            products = sequence([
                self._vector(Place(each, row, vector, start), partial(self._updated, i, j, data))
                for j, (first, end) in enumerate(self.real)
                for vector, start in enumerate(starts)
                if not isinstance(start, int) or (start < end and start + self.lanes > first)
                for row, i in met
                for each in range(self.unrolled)
            ])  # fmt: skip
            yield products if data.inside is None else IfThenElse(data.inside, products, None)

    def _updated(self, i: int, j: int, data: DataRow, place: Place, lane: Expr, acc: TensorLoad) -> Stmt:
        """Add the products of a tap to a vector of a row."""
        return self.updated(acc, (i, j), self._values(place), self._read(place, j, lane, data))

    def _read(self, place: Place, j: int, lane: Expr, data: DataRow) -> Expr:
        """Read the data of a tap; the lanes of a vector move at padding."""
        first, end = self.real[j]
        begin = min(max(place.start, first), end - self.lanes) if isinstance(place.start, int) else place.start
        found = data.element((lane + begin) * self.columns.stride + j * self.columns.step)
        if begin is place.start or begin == place.start:
            return found
        found, column = moved(found, begin - place.start), lane + place.start
        if self.skips_padding:
            return found
        return tirx.Select(tirx.And(int64(first) <= column, column < int64(end)), found, self.zero)

    def _store(self, place: Place, lane: Expr, acc: TensorLoad) -> Stmt:
        return self.finished(acc, self._indices(place, lane))

    def _finish(self, place: Place, lane: Expr, acc: TensorLoad) -> Stmt:
        return assign(acc, self.epilogue(acc, self._indices(place, lane)))

    def _move(self, place: Place, lane: Expr, acc: TensorLoad) -> Stmt:
        return BufferStore(self.result, acc, self._indices(place, lane))

    def _indices(self, place: Place, lane: Expr) -> list[Expr]:
        return self.result_at(self._values(place), self._row + place.row, lane + place.start)

    @property
    def _row(self) -> Expr:
        """Return the first row of a group."""
        return block_start(self.row, self.count, self.height)

    @property
    def _continues(self) -> bool:
        """Return whether the epilogue may read an element of the result that an overlapping vector writes: a sum so far."""
        if not self.once or self.width % self.lanes == 0 or str(self.result.ty.dtype) != self.dtype:
            return False
        shape = [int(extent) for extent in self.result.ty.shape]
        return any([int(extent) for extent in load.source.ty.shape] == shape for load in self.read_late)


def _lanes_of(filters: int, widest: int) -> int:
    """Return the lanes of vectors of so many filters: of enough filters the last vector overlaps the one before."""
    return widest if filters >= widest else filters & -filters
