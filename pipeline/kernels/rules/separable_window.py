"""Schedule large poolings in two steps: each column of a window first, then the line of these along the row.

    line[…] = start, at the padding of both ends                       once
    for … planes:
        for … rows:
            acc[n, 0:16] = start
            for … taps i of a column:
                acc[n, 0:16] = max(acc[n, 0:16], data[y · stride + i, …])      under a condition at padding
            line[…] = acc
            result[y] = epilogue(max over taps j of line[x · stride + j])

A window of 13 × 13 takes 26 steps instead of 169. Sums are added in this order: first columns, then rows. Each row is
computed once.
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
from ...program import DTYPE_BYTES
from ...targets import Machine
from ...tir.expressions import COMBINED, combined_term, loads, replaced
from ...tir.index_grid import Unknown
from ...tir.inlining import inlined
from ...tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ...tir.row_window import takes_a_row
from ...tir.workspace import held_bytes
from .line_buffer import LineBuffer, loop_of
from .rule import RuleResult

_SERIAL, _VECTORIZED = 0, 2
#: lanes of the shortest vectors; the largest stride along a row: see codegen/expand/strided_loads.py
_FEW, _MOST_STRIDE = 4, 4
#: how many times fewer steps are to pay for the line, which is stored and loaded again
_GAIN = 3
#: most vectors combined at a time, and most of their steps unrolled
_AT_ONCE, _MOST_STEPS = 8, 128

#: make the statements of vectors from their first columns
_Made = Callable[[list[Expr]], Stmt]


def separable_windows(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of a large pooling by columns, then by rows: a Rule."""
    if machine.compact:
        return
    with suppress(Unknown):
        made = _Separable(inlined(kernel), machine).kernel()
        yield RuleResult(made, workspace=held_bytes(made))


class _Separable(LineBuffer):
    """Build the kernel: `line` holds the combined columns of a row of windows; `first` up to `end` are not padding."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel, machine)
        store, start = self.window.body, self.window.init.value
        if (
            type(store.value).__name__ not in COMBINED
            or not isinstance(combined_term(store), TensorLoad)
            or loads(start)
        ):
            raise Unknown("the window is not a pooling")
        if self.summed or self.filters or self.dtype != "float32":
            raise Unknown("the window covers several planes, or is of other numbers")
        rows, columns = self.rows.taps, self.columns.taps
        if rows * columns < _GAIN * (rows * self.columns.stride + columns):
            raise Unknown("the window is small")
        if self.columns.stride > (_MOST_STRIDE if machine.transposes else 1):
            raise Unknown("vectors of a row are apart")
        self.start = start
        _, self.first, self.end, zero, _ = self.row_at(self.rows.start)
        if self.padding is not None and not tvm_ffi.structural_equal(zero, start):
            raise Unknown("the padding is not the start of a window")
        self.lanes = machine.lanes
        while self.lanes > min(self.width, self.end - self.first):
            self.lanes //= 2
        if self.lanes < _FEW:
            raise Unknown("a row is not whole vectors")
        self.line = buffer_of("line", (self.needed,), self.dtype)
        self.at_once = -(-max(self.width, self.end - self.first) // self.lanes)
        self.at_once = self._fitting() if takes_a_row(kernel) else min(self.at_once, _AT_ONCE)
        self.acc = buffer_of("acc", (self.at_once, self.lanes), self.dtype)

    def _fitting(self) -> int:
        """Count the vectors at once that registers hold beside the line."""
        left = self.register_bytes - aligned(self.needed * DTYPE_BYTES[self.dtype], ALIGNMENT)
        most = left // ALIGNMENT * ALIGNMENT // (self.lanes * DTYPE_BYTES[self.dtype])
        if most < 1:
            raise Unknown("a line is too long for registers")
        return min(self.at_once, _AT_ONCE, most)

    def kernel(self) -> PrimFunc:
        row = Var("row", "int64")
        self.values[self.y] = row if self.height > 1 else int64(0)
        ends = [(low, high) for low, high in ((0, self.first), (self.end, self.needed)) if low < high]
        together = max(min(_MOST_STEPS // self.columns.taps, self.at_once), 1)
        stmt = sequence(
            [
                *self._vectors(self.first, self.end, self.at_once, self._down),
                *self._vectors(0, self.width, together, self._along),
            ]
        )
        stmt = loop_of(row, self.height, stmt)
        for axis, var in reversed(self.loops.items()):
            stmt = For(var, int64(0), int64(self.axes[axis]), _SERIAL, stmt)
        return kernel_of(
            self.original.params,
            [sequence([*(self._emptied(*each) for each in ends), stmt])],
            [self.line, self.acc],
            self.original.attrs,
        )

    def _emptied(self, low: int, high: int) -> Stmt:
        place = Var("place", "int64")
        return loop_of(place, high - low, BufferStore(self.line, self.start, [place + low]))

    def _vectors(self, first: int, end: int, most: int, made: _Made) -> Iterator[Stmt]:
        """Yield the statements of the vectors from `first` up to `end`, `most` at once; the last overlaps the one before."""
        whole = (end - first) // (most * self.lanes)
        group = Var("group", "int64")
        if whole:
            yield loop_of(
                group, whole, made([group * (most * self.lanes) + (first + n * self.lanes) for n in range(most)])
            )
        begin = first + whole * most * self.lanes
        if begin < end:
            yield made([int64(each) for each in (*range(begin, end - self.lanes, self.lanes), end - self.lanes)])

    def _down(self, starts: list[Expr]) -> Stmt:
        """Combine the columns of a row of windows into the line, vector by vector."""
        tap = Var("tap", "int64")
        row = self.values[self.y] * self.rows.stride + tap * self.rows.step + self.rows.start
        inside, _, _, _, element = self.row_at(row)
        added = self._each(
            starts, lambda at, acc: BufferStore(acc.source, self._combined(acc, element(at)), acc.indices)
        )
        stmt = added if inside is None else IfThenElse(inside, added, None)
        return sequence([
            self._each(starts, lambda at, acc: BufferStore(acc.source, self.start, acc.indices)),
            For(tap, int64(0), int64(self.rows.taps), _SERIAL, stmt),
            self._each(starts, lambda at, acc: BufferStore(self.line, acc, [at])),
        ])  # fmt: skip

    def _along(self, starts: list[Expr]) -> Stmt:
        """Combine the line along the row, and store the epilogue."""

        def load(at: Expr, j: int) -> Expr:
            return tirx.BufferLoad(self.line, [at * self.columns.stride + j * self.columns.step])

        def combined(j: int, at: Expr, acc: TensorLoad) -> BufferStore:
            return BufferStore(acc.source, self._combined(acc, load(at, j)), acc.indices)

        steps = [self._each(starts, lambda at, acc: BufferStore(acc.source, load(at, 0), acc.indices))]
        steps += [self._each(starts, partial(combined, j)) for j in range(1, self.columns.taps)]
        return sequence([*steps, self._each(starts, self._store)])

    def _combined(self, one: Expr, other: Expr) -> Expr:
        return COMBINED[type(self.window.body.value).__name__](one, other)

    def _each(self, starts: list[Expr], made: Callable[[Expr, TensorLoad], Stmt]) -> Stmt:
        """Build a statement for each vector, of a column of its lanes and the accumulator."""
        parts = []
        for number, start in enumerate(starts):
            lane = Var("lane", "int64")
            acc = tirx.BufferLoad(self.acc, [int64(number), lane])
            parts.append(For(lane, int64(0), int64(self.lanes), _VECTORIZED, made(start + lane, acc)))
        return sequence(parts)

    def _store(self, at: Expr, acc: TensorLoad) -> Stmt:
        indices = [*(replaced(index, self.values) for index in (*self.outer, self.y)), at]
        return BufferStore(self.result, self.epilogue(acc, indices), indices)
