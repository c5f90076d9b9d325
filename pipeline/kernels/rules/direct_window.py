"""Schedule windows of rows in a streaming region: vectors of a row, read where they lie.

    for … planes, rows:
        acc[n, 0:16] = start, for all vectors n of the row         the last vector overlaps the one before
        for … window, unrolled:
            acc[n, 0:16] = max(acc[n, 0:16], data[row, x · stride + j])
        result[row] = epilogue(acc)

Products with padding are skipped: rows of the window under a condition; the columns that reach into it are peeled, element
by element, each with the taps it has.

A copy of the rows, as rules/sliding_window.py makes, would be read before the processor has stored it. All vectors of a row
are loaded before one is stored: a sum may continue in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ...memory import ALIGNMENT
from ...memory.liveness import aligned
from ...targets import Machine
from ...tir.expressions import replaced
from ...tir.index_grid import Unknown
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ...tir.row_window import takes_a_row
from ...tir.workspace import held_bytes
from .line_buffer import LineBuffer
from .loop_peeling import has_skippable_padding
from .rule import RuleResult

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


class _Direct(LineBuffer):
    """Build the kernel: `starts` are the first columns of the vectors of a row, `edges` the columns peeled."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel, machine)
        if self.dtype != "float32" or str(self.data.ty.dtype) != self.dtype:
            raise Unknown("the window is of other numbers")
        if self.padding is not None and not has_skippable_padding(self.window, [self.padding]):
            raise Unknown("the padding cannot be skipped, or lines part the columns once for all taps")
        self.row = Var("row", "int64")
        taken = (self.columns.taps - 1) * self.columns.step
        _, self.first, self.end, _ = self._row_of(0)
        low = -(-self.first // self.columns.stride)
        high = min((self.end - 1 - taken) // self.columns.stride + 1, self.width)
        if self.columns.stride > _MOST_STRIDE or high - low < _FEW:
            raise Unknown("a row is no vectors")
        self.lanes = machine.lanes
        while self.lanes > high - low:
            self.lanes //= 2
        self.starts = [*range(low, high - self.lanes, self.lanes), high - self.lanes]
        self.edges = [*range(low), *range(high, self.width)]
        self.acc = buffer_of("acc", (len(self.starts), self.lanes), self.dtype)
        self.edge = buffer_of("edge", (max(len(self.edges), 1),), self.dtype)
        held = aligned(len(self.starts) * self.lanes * 4, ALIGNMENT) + aligned(len(self.edges) * 4, ALIGNMENT)
        if len(self.starts) > machine.registers_of(self.lanes) // 2 or held > machine.register_bytes:
            raise Unknown("a row is more than registers hold")

    def kernel(self) -> PrimFunc:
        rows = [self._row_updated(i) for i in range(self.rows.taps)]
        stmt = sequence([*self._each(self._start), *rows, *self._each(self._store)])
        if self.height > 1:
            stmt = For(self.row, int64(0), int64(self.height), _SERIAL, stmt)
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        own = [self.acc, self.edge] if self.edges else [self.acc]
        return kernel_of(self.original.params, [stmt], own, self.original.attrs)

    def _each(self, made: Callable[[Expr, TensorLoad], BufferStore], tap: int | None = None) -> Iterator[Stmt]:
        """Yield a statement for each vector and edge of a row, made of its columns and its accumulator.

        With `tap`, for no edge of which that tap of a row is padding.
        """
        for number, start in enumerate(self.starts):
            lane = Var("lane", "int64")
            acc = tirx.BufferLoad(self.acc, [int64(number), lane])
            yield For(lane, int64(0), int64(self.lanes), _VECTORIZED, made(lane + start, acc))
        for number, column in enumerate(self.edges):
            if tap is None or self.first <= column * self.columns.stride + tap * self.columns.step < self.end:
                yield made(int64(column), tirx.BufferLoad(self.edge, [int64(number)]))

    def _start(self, column: Expr, acc: TensorLoad) -> BufferStore:
        assert isinstance(self.window.init, BufferStore)
        value = replaced(self.window.init.value, {**self.values, self.y: self._row, self.x: column})
        return BufferStore(acc.source, value, acc.indices)

    def _row_of(self, i: int) -> tuple[Expr | None, int, int, Callable[[Expr], Expr]]:
        """Return row `i` of the window: whether it is no padding, its first and end column, its element at a column."""
        row = self._row * self.rows.stride + (replaced(self.rows.start, self.values) + i * self.rows.step)
        if self.padding is not None:
            inside, first, end, _, element = self._padded(row, self.needed)
            return inside, first, end, element
        outer = [self.outside(index) for index in self.indices[:-2]]
        return None, 0, self.needed, lambda column: tirx.BufferLoad(self.data, [*outer, row, column])

    def _row_updated(self, i: int) -> Stmt:
        inside, _, _, element = self._row_of(i)
        stmt = sequence([stmt for j in range(self.columns.taps) for stmt in self._each(self._updated(i, j, element), j)])
        return stmt if inside is None else IfThenElse(inside, stmt, None)

    def _updated(self, i: int, j: int, element: Callable[[Expr], Expr]) -> Callable[[Expr, TensorLoad], BufferStore]:
        tap = {var: int64(value) for var, value in ((self.rows.tap, i), (self.columns.tap, j)) if var is not None}
        product = replaced(self.window.body.value, {**self.values, **tap})

        def update(column: Expr, acc: TensorLoad) -> BufferStore:
            def load(each: TensorLoad) -> Expr:
                if each.source.same_as(self.window.body.buffer):
                    return acc
                if each.source.same_as(self.data):
                    return element(column * self.columns.stride + j * self.columns.step)
                return each

            return BufferStore(acc.source, tvm_ffi.structural_map(product, (TensorLoad, load)), acc.indices)

        return update

    def _store(self, column: Expr, acc: TensorLoad) -> BufferStore:
        indices = [*map(self.outside, self.outer), self._row, column]
        made: Expr = acc
        if self.last is not None:
            value = tvm_ffi.structural_map(self.last.body.value, (TensorLoad, lambda each: acc if each.source.same_as(self.window.body.buffer) else each))
            made = replaced(value, dict(zip((axis.var for axis in self.last.iter_vars), indices)))
        return BufferStore(self.result, made, indices)

    @property
    def _row(self) -> Expr:
        return self.row if self.height > 1 else int64(0)
