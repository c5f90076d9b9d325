"""Schedule windows over planes whose rows are one vector: taps are lanes of a row of the data, shuffled.

    for … planes, groups of rows:
        acc[r, 0:8] = start                                    past the end of a plane of 7 columns
        for … rows of the data that a group needs, unrolled:
            for … taps and rows r that meet it:
                acc[r, 0:8] += row[x · stride + j] * weight[i, j], 0 in place of padding
        result[rows] = epilogue(acc)                           of the plane alone

Each row of the data is loaded once. Vectors of rules/direct_window.py hold no lanes past a row: 7 columns take two of 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import tvm_ffi
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import loads, replaced
from ....tir.index_grid import Unknown
from ....tir.inlining import inlined
from ....tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ....tir.operators.row_element import nearest, row_element
from ....tir.row_window import takes_a_row
from ....tir.workspace import held_bytes
from ..line_buffer import DataRow, LineBuffer, loop_of
from ..loop_peeling import has_skippable_padding
from ..rule import RuleResult

_SERIAL, _VECTORIZED = 0, 2
#: lanes of the shortest vectors of which part is unused; vectors of a row of the data, which one shuffle takes
_FEW, _VECTORS = 8, 2
#: fewest taps for which vectors longer than the shortest are shuffled, and most products unrolled
_TAPS, _PRODUCTS = 10, 512
#: sums to add to in turn: two additions a cycle, each of which takes four
_CHAINS = 12


def narrow_windows(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of a depthwise window whose rows are one vector: a Rule."""
    if not machine.transposes or machine.compact:
        return
    with suppress(Unknown):
        made = _Narrow(inlined(kernel), machine).kernel()
        yield RuleResult(made, workspace=held_bytes(made))


class _Narrow(LineBuffer):
    """Build the kernel: `acc` holds `count` rows of the result at a time, of data whose columns `first` up to `end` are real."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel, machine)
        if self.summed or self.filters or self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise Unknown("the window covers several planes, or is of other numbers")
        if takes_a_row(kernel) or loads(self.window.init.value) or not self.fits_accumulators:
            raise Unknown("rows depend on a number, a sum continues, or an epilogue reads past the end")
        if self.padding is not None and not has_skippable_padding(self.window, [self.padding]):
            raise Unknown("the padding cannot be skipped")
        taps = self.rows.taps * self.columns.taps
        self.lanes = _FEW
        while self.lanes < self.width:
            self.lanes *= 2
        if self.lanes > machine.lanes or 2 * self.width <= self.lanes or (self.lanes > _FEW and taps < _TAPS):
            raise Unknown("a row is not a vector, or the window is small")
        self.row, self.count = Var("group", "int64"), self.height
        _, self.first, self.end, _, _ = self._row_of(0)
        if not self.lanes // 2 <= self.end - self.first <= _VECTORS * self.lanes:
            raise Unknown("a row of the data is more than two vectors")
        self.most = machine.registers_of(self.lanes) // 2
        most = min(self.most, _PRODUCTS // taps)
        if most < 1:
            raise Unknown("the window is large")
        self.count = -(-self.height // -(-self.height // most))
        self.acc = buffer_of("acc", (self.count, self.lanes), self.dtype)

    def kernel(self) -> PrimFunc:
        stmt = loop_of(
            self.row,
            -(-self.height // self.count),
            sequence([*self._each(self._start), *self._added(), *self._stored()]),
        )
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.acc], self.original.attrs)

    @property
    def _row(self) -> Expr:
        """Return the first row of a group."""
        return self.first_row(self.row, self.count)

    def _row_of(self, number: int) -> DataRow:
        """Return a data row of a group."""
        return self.row_at(self._row * self.rows.stride + (replaced(self.rows.start, self.values) + number))

    def _added(self) -> Iterator[Stmt]:
        """Yield the products of all rows of the data: two far apart at a time, whose sums wait for no other, and share weights."""
        analyzer = sym.Analyzer()
        numbers = range(self.count_of(self.count))
        found = [(met, self._row_of(number)) for number in numbers if (met := self.met_rows(number, self.count))]
        present = [
            (met, row) for met, row in found if row.inside is None or not analyzer.can_prove_equal(row.inside, False)
        ]
        conditions = [
            None if row.inside is None or analyzer.can_prove(row.inside) else row.inside for _, row in present
        ]
        step, count = self.rows.stride, len(present)
        together = max(min(-(-_CHAINS * step // self.rows.taps), self.most - self.count), 1)
        apart = -(-count // (together * step)) * step if all(each is None for each in conditions) else count
        for number in range(min(apart, count)):
            products = self._products(present[number::apart])
            yield (
                sequence(products)
                if conditions[number] is None
                else IfThenElse(conditions[number], sequence(products), None)
            )

    def _products(self, rows: Sequence[tuple[list[tuple[int, int]], DataRow]]) -> list[Stmt]:
        """Return the products of rows of the data with all their taps, for each row of the result."""
        return [
            self._vector(row, partial(self._updated, row, (i, j), data.element))
            for j in range(self.columns.taps)
            for met, data in rows
            for row, i in met
        ]

    def _updated(
        self, row: int, tap: tuple[int, int], element: Callable[[Expr], Expr], lane: Expr, acc: TensorLoad
    ) -> BufferStore:
        window = zip((self.rows.tap, self.columns.tap), tap)
        taps = {var: int64(value) for var, value in window if var is not None}
        product = replaced(self.window.body.value, {**self.values, self.y: self._row + row, **taps})
        place, extent = lane * self.columns.stride + (tap[1] * self.columns.step - self.first), self.end - self.first

        def load(each: TensorLoad) -> Expr:
            if each.source.same_as(self.window.body.buffer):
                return acc
            if each.source.same_as(self.data):
                return row_element(
                    element(int64(self.first)), element(nearest(place, extent) + self.first), place, extent
                )
            return each

        return BufferStore(acc.source, tvm_ffi.structural_map(product, (TensorLoad, load)), acc.indices)

    def _each(self, made: Callable[[int, Expr, TensorLoad], BufferStore]) -> Iterator[Stmt]:
        for row in range(self.count):
            yield self._vector(row, partial(made, row))

    def _vector(self, row: int, made: Callable[[Expr, TensorLoad], BufferStore]) -> Stmt:
        lane = Var("lane", "int64")
        return For(
            lane, int64(0), int64(self.lanes), _VECTORIZED, made(lane, tirx.BufferLoad(self.acc, [int64(row), lane]))
        )

    def _start(self, row: int, lane: Expr, acc: TensorLoad) -> BufferStore:
        return BufferStore(acc.source, self.window.init.value, acc.indices)

    def _indices(self, row: int, column: Expr) -> list[Expr]:
        return [*map(self.outside, self.outer), self._row + row, column]

    def _stored(self) -> Iterator[Stmt]:
        """Compute the epilogue in whole vectors, and store the columns of the plane."""
        if self.last is not None:
            yield from self._each(
                lambda row, lane, acc: BufferStore(
                    acc.source, self.epilogue(acc, self._indices(row, lane)), acc.indices
                )
            )
        kind = _VECTORIZED if self.width == self.lanes else _SERIAL
        for row in range(self.count):
            lane = Var("lane", "int64")
            store = BufferStore(self.result, tirx.BufferLoad(self.acc, [int64(row), lane]), self._indices(row, lane))
            yield For(lane, int64(0), int64(self.width), kind, store)
