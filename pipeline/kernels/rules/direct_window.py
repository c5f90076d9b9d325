"""Schedule windows over planes, or over rows in a streaming region: vectors of a row, read where they lie.

    for … planes, groups of rows:
        acc[r, n, 0:16] = start, for all vectors n of a row        the last vector overlaps the one before
        for … rows of the data that a group needs, unrolled:
            for … taps and rows r that meet it:
                acc[r, n, 0:16] = max(acc[r, n, 0:16], data[row, x · stride + j])
        result[rows] = epilogue(acc)

Products with padding are skipped, rows of the data under a condition. A vector that reaches into padding is one inside the
row, moved: 0 0 x[0:14] for the first of a window of five columns.

A copy of the rows, as rules/sliding_window.py makes, would be read before the processor has stored it. All vectors of a group
are loaded before one is stored: a sum may continue in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

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
from ...tir.operators.moved import moved
from ...tir.row_window import takes_a_row
from ...tir.workspace import held_bytes
from .line_buffer import LineBuffer
from .loop_peeling import has_skippable_padding
from .rule import RuleResult

_SERIAL, _VECTORIZED = 0, 2
#: lanes of the shortest vectors, and the largest stride: see codegen/expand/strided_loads.py
_FEW, _MOST_STRIDE = 4, 4
#: most taps of a window whose short vectors take no longer than the lines of rules/sliding_window.py, once these are copied
_SMALL = 16
#: most products of vectors unrolled for a row, and for several
_MOST_PRODUCTS, _PRODUCTS = 512, 256


def direct_windows(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of `kernel` by vectors of its rows: a Rule."""
    if not machine.transposes or machine.compact:
        return
    with suppress(Unknown):
        made = _Direct(inlined(kernel), machine).kernel()
        yield RuleResult(made, workspace=held_bytes(made))


class _Direct(LineBuffer):
    """Build the kernel: `starts` are the first columns of the vectors of a row, `real` the columns each tap of it has."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel, machine)
        if self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise Unknown("the window is of other numbers")
        if self.padding is not None and not has_skippable_padding(self.window, [self.padding]):
            raise Unknown("the padding cannot be skipped")
        self.row, self.count = Var("group", "int64"), 1
        _, self.first, self.end, _ = self._row_of(0)
        self.real = [self._real(j) for j in range(self.columns.taps)]
        most = min((end - first for first, end in self.real if first < end), default=0)
        self.lanes = machine.lanes
        while self.lanes > most:
            self.lanes //= 2
        if self.columns.stride > _MOST_STRIDE or self.lanes < _FEW:
            raise Unknown("a row is no vectors")
        self.starts = [*range(0, self.width - self.lanes, self.lanes), self.width - self.lanes]
        registers, taps = machine.registers_of(self.lanes), self.rows.taps * self.columns.taps
        if taps > _SMALL and self.lanes == _FEW and len(self.starts) > self.chunks and not takes_a_row(kernel):
            raise Unknown("padded lines take fewer products")
        held, products = aligned(len(self.starts) * self.lanes * 4, ALIGNMENT), taps * len(self.starts)
        if len(self.starts) > registers - 2 or held > machine.register_bytes or products > _MOST_PRODUCTS:
            raise Unknown("a row is more than registers hold, or than is unrolled")
        self.count = self._rows_at_once(max(min(registers // 2 // len(self.starts), _PRODUCTS // products), 1))
        self.acc = buffer_of("acc", (self.count, len(self.starts), self.lanes), self.dtype)

    def _rows_at_once(self, most: int) -> int:
        """Choose the rows of a group; the last group may overlap the one before, unless sums continue or results replace data."""
        if takes_a_row(self.original) or loads(self.window.init.value):
            return next(n for n in range(min(most, self.height), 0, -1) if self.height % n == 0)
        return -(-self.height // -(-self.height // most))

    def kernel(self) -> PrimFunc:
        window = [stmt for row in range(self.count_of(self.count)) for stmt in self._row_added(row)]
        stmt = sequence([*self._each(self._start), *window, *self._each(self._store)])
        if self.height > self.count:
            stmt = For(self.row, int64(0), int64(-(-self.height // self.count)), _SERIAL, stmt)
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.acc], self.original.attrs)

    def _real(self, j: int) -> tuple[int, int]:
        """Return first and end column of the result for which tap `j` of a row is no padding."""
        first, last = self.first - j * self.columns.step, self.end - 1 - j * self.columns.step
        return max(-(-first // self.columns.stride), 0), min(last // self.columns.stride + 1, self.width)

    def _each(self, made: Callable[[int, Expr, TensorLoad, int], BufferStore]) -> Iterator[Stmt]:
        """Yield a statement for each vector of the rows, made of its row, lane, accumulator and first column."""
        for row in range(self.count):
            for number in range(len(self.starts)):
                yield self._vector(row, number, made)

    def _vector(self, row: int, number: int, made: Callable[[int, Expr, TensorLoad, int], BufferStore]) -> Stmt:
        lane = Var("lane", "int64")
        acc = tirx.BufferLoad(self.acc, [int64(row), int64(number), lane])
        return For(lane, int64(0), int64(self.lanes), _VECTORIZED, made(row, lane, acc, self.starts[number]))

    def _start(self, row: int, lane: Expr, acc: TensorLoad, start: int) -> BufferStore:
        assert isinstance(self.window.init, BufferStore)
        value = replaced(self.window.init.value, {**self.values, self.y: self._row + row, self.x: lane + start})
        return BufferStore(acc.source, value, acc.indices)

    def _row_of(self, number: int) -> tuple[Expr | None, int, int, Callable[[Expr], Expr]]:
        """Return a data row of a group: condition against padding, first and end column, element at a column."""
        row = self._row * self.rows.stride + (replaced(self.rows.start, self.values) + number)
        if self.padding is not None:
            inside, first, end, _, element = self._padded(row, self.needed)
            return inside, first, end, element
        outer = [self.outside(index) for index in self.indices[:-2]]
        return None, 0, self.needed, lambda column: tirx.BufferLoad(self.data, [*outer, row, column])

    def _row_added(self, number: int) -> Iterator[Stmt]:
        """Yield the products of a data row with all its taps, for each result row."""
        taps = [(row, divmod(number - row * self.rows.stride, self.rows.step)) for row in range(self.count)]
        met = [(row, i) for row, (i, rest) in taps if rest == 0 and 0 <= i < self.rows.taps]
        if not met:
            return
        inside, _, _, element = self._row_of(number)
        parts = [
            self._vector(row, vector, partial(self._updated, i, j, element))
            for j, (first, end) in enumerate(self.real)
            for row, i in met
            for vector, start in enumerate(self.starts)
            if start < end and start + self.lanes > first
        ]
        yield sequence(parts) if inside is None else IfThenElse(inside, sequence(parts), None)

    def _updated(
        self, i: int, j: int, element: Callable[[Expr], Expr], _row: int, lane: Expr, acc: TensorLoad, start: int
    ) -> BufferStore:
        """Add the products of a tap to a vector of a row, whose lanes move if it reaches into padding."""
        tap = {var: int64(value) for var, value in ((self.rows.tap, i), (self.columns.tap, j)) if var is not None}
        product = replaced(self.window.body.value, {**self.values, **tap})
        first, end = self.real[j]
        begin = min(max(start, first), end - self.lanes)

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.window.body.buffer):
                return acc
            if each.source.same_as(self.data):
                found = element((lane + begin) * self.columns.stride + j * self.columns.step)
                return found if begin == start else moved(found, begin - start)
            return each

        return BufferStore(acc.source, tvm_ffi.structural_map(product, (TensorLoad, load)), acc.indices)

    def _store(self, row: int, lane: Expr, acc: TensorLoad, start: int) -> BufferStore:
        indices = [*map(self.outside, self.outer), self._row + row, lane + start]
        made: Expr = acc
        if self.last is not None:
            value = tvm_ffi.structural_map(self.last.body.value, (TensorLoad, lambda each: acc if each.source.same_as(self.window.body.buffer) else each))
            made = replaced(value, dict(zip((axis.var for axis in self.last.iter_vars), indices)))
        return BufferStore(self.result, made, indices)

    @property
    def _row(self) -> Expr:
        """Return the first row of a group."""
        if self.height == self.count:
            return int64(0)
        first = self.row * self.count
        return first if self.height % self.count == 0 else tirx.min(first, int64(self.height - self.count))
