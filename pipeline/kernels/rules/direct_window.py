"""Schedule windows of rows without padding in a streaming region: vectors of a row, read where they lie.

    for … planes, rows:
        acc[n, 0:16] = start, for all vectors n of the row         the last vector overlaps the one before
        for … window, unrolled:
            acc[n, 0:16] = max(acc[n, 0:16], data[row, x · stride + j])
        result[row] = epilogue(acc)

A copy of the rows, as rules/sliding_window.py makes, would be read before the processor has stored it. All vectors of a row
are loaded before one is stored: a sum may continue in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ...targets import Machine
from ...tir.expressions import replaced
from ...tir.index_grid import Unknown
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ...tir.row_window import takes_a_row
from ...tir.workspace import held_bytes
from .rule import RuleResult
from .sliding_plane import Plane

_SERIAL, _VECTORIZED = 0, 2
#: lanes of the shortest vectors, and the largest stride: see codegen/expand/strided_loads.py
_FEW, _MOST_STRIDE = 4, 4


def direct_windows(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of `kernel` by vectors of its rows: a Rule."""
    if not machine.transposes or machine.compact or not takes_a_row(kernel):
        return
    with suppress(Unknown):
        made = _Direct(inlined(kernel), machine).kernel()
        yield RuleResult(made, workspace=held_bytes(made))


class _Direct(Plane):
    """Build the kernel: `starts` are the first columns of the vectors of a row."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel)
        if self.padding is not None or self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise Unknown("the window has padding, or other numbers")
        if self.columns.stride > _MOST_STRIDE or self.width < _FEW:
            raise Unknown("a row is no vectors")
        self.lanes = machine.lanes
        while self.lanes > self.width:
            self.lanes //= 2
        self.starts = [*range(0, self.width - self.lanes, self.lanes), self.width - self.lanes]
        if len(self.starts) > machine.registers_of(self.lanes) // 2 or len(self.starts) * self.lanes * 4 > machine.register_bytes:
            raise Unknown("a row is more than registers hold")
        self.loops = {axis: Var("plane", "int64") for axis in self.outer if isinstance(axis, Var) and self.axes[axis] > 1}
        single = {axis.var: int64(0) for axis in self.window.iter_vars if self.axes[axis.var] == 1}
        self.values: dict[Var, Expr] = {**single, **self.loops}
        self.row = Var("row", "int64")
        self.acc = buffer_of("acc", (len(self.starts), self.lanes), self.dtype)

    def kernel(self) -> PrimFunc:
        taps = [(i, j) for i in range(self.rows.taps) for j in range(self.columns.taps)]
        parts = [*self._each(self._start), *(stmt for i, j in taps for stmt in self._each(self._updated(i, j))), *self._each(self._store)]
        stmt: Stmt = sequence(parts)
        if self.height > 1:
            stmt = For(self.row, int64(0), int64(self.height), _SERIAL, stmt)
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        return kernel_of(self.original.params, [stmt], [self.acc], self.original.attrs)

    def _each(self, made: Callable[[int, Expr, Expr], BufferStore]) -> Iterator[Stmt]:
        """Yield a statement for each vector of a row, made of its number, a lane and a column."""
        for number, start in enumerate(self.starts):
            lane = Var("lane", "int64")
            yield For(lane, int64(0), int64(self.lanes), _VECTORIZED, made(number, lane, lane + start))

    def _start(self, number: int, lane: Expr, column: Expr) -> BufferStore:
        assert isinstance(self.window.init, BufferStore)
        value = replaced(self.window.init.value, {**self.values, self.y: self._row, self.x: column})
        return BufferStore(self.acc, value, [int64(number), lane])

    def _updated(self, i: int, j: int) -> Callable[[int, Expr, Expr], BufferStore]:
        tap = {var: int64(value) for var, value in ((self.rows.tap, i), (self.columns.tap, j)) if var is not None}
        product = replaced(self.window.body.value, {**self.values, **tap})
        row = self._row * self.rows.stride + (replaced(self.rows.start, self.values) + i * self.rows.step)
        outer = [replaced(index, self.values) for index in self.indices[:-2]]

        def update(number: int, lane: Expr, column: Expr) -> BufferStore:
            at = [int64(number), lane]

            def load(each: TensorLoad) -> Expr:
                if each.source.same_as(self.window.body.buffer):
                    return tirx.BufferLoad(self.acc, at)
                if each.source.same_as(self.data):
                    return tirx.BufferLoad(self.data, [*outer, row, column * self.columns.stride + j * self.columns.step])
                return each

            return BufferStore(self.acc, tvm_ffi.structural_map(product, (TensorLoad, load)), at)

        return update

    def _store(self, number: int, lane: Expr, column: Expr) -> BufferStore:
        indices = [*(replaced(index, self.values) for index in self.outer), self._row, column]
        acc: Expr = tirx.BufferLoad(self.acc, [int64(number), lane])
        if self.last is not None:
            value = tvm_ffi.structural_map(self.last.body.value, (TensorLoad, lambda each: acc if each.source.same_as(self.window.body.buffer) else each))
            acc = replaced(value, dict(zip((axis.var for axis in self.last.iter_vars), indices)))
        return BufferStore(self.result, acc, indices)

    @property
    def _row(self) -> Expr:
        return self.row if self.height > 1 else int64(0)
