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
from functools import partial

from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, IfThenElse, PrimFunc, Stmt

from ....memory import ALIGNMENT
from ....memory.liveness import aligned
from ....targets import Machine
from ....tir.expressions import loads
from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.row_window import takes_a_row
from ..fused_sum import assign, sum_rule
from ..line_buffer import loop_of
from ..sliding_plane import Plane

#: lanes of the shortest vectors; the largest stride along a row: see codegen/expand/strided_loads.py
_FEW, _MOST_STRIDE = 4, 4
#: how many times fewer steps are to pay for the line, which is stored and loaded again
_GAIN = 3
#: most vectors combined at a time, and most of their steps unrolled
_AT_ONCE, _MOST_STEPS = 8, 128

#: make the statements of vectors from their first columns
_Make = Callable[[list[Expr]], Stmt]


@sum_rule
def separable_windows(kernel: PrimFunc, machine: Machine) -> PrimFunc:
    """Schedule a large pooling by columns, then by rows: a Rule."""
    return _Separable(inlined(kernel), machine).kernel()


class _Separable(Plane):
    """Build the kernel: `line` holds the combined columns of a row of windows; `first` up to `end` are not padding."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel)
        self.start = self.sum.init.value
        if machine.compact or not self.pools or loads(self.start):
            raise NoMatch("code is short, or the window is not a pooling")
        if self.summed or self.filters or self.dtype != "float32":
            raise NoMatch("the window covers several planes, or is of other numbers")
        rows, columns = self.rows.taps, self.columns.taps
        if rows * columns < _GAIN * (rows * self.columns.stride + columns):
            raise NoMatch("the window is small")
        if self.columns.stride > (_MOST_STRIDE if machine.transposes else 1):
            raise NoMatch("vectors of a row are apart")
        _, self.first, self.end, _, _ = self.row_at(self.rows.start)
        self.lanes = machine.lanes
        while self.lanes > min(self.width, self.end - self.first):
            self.lanes //= 2
        if self.lanes < _FEW:
            raise NoMatch("a row is not whole vectors")
        self.line = buffer_of("line", (self.needed,), self.dtype)
        self.at_once = min(-(-max(self.width, self.end - self.first) // self.lanes), _AT_ONCE)
        if takes_a_row(kernel):
            left = machine.register_bytes - aligned(self.needed * 4, ALIGNMENT)
            self.at_once = min(self.at_once, left // ALIGNMENT * ALIGNMENT // (self.lanes * 4))
        if self.at_once < 1:
            raise NoMatch("a line is too long for registers")
        self.acc = buffer_of("acc", (self.at_once, self.lanes), self.dtype)

    def kernel(self) -> PrimFunc:
        row = Var("row", "int64")
        self.values[self.y] = row if self.height > 1 else int64(0)
        ends = [(low, high) for low, high in ((0, self.first), (self.end, self.needed)) if low < high]
        together = max(min(_MOST_STEPS // self.columns.taps, self.at_once), 1)
        down = self._vectors(self.first, self.end, self.at_once, self._down)
        along = self._vectors(0, self.width, together, self._along)
        stmt = loop_of(row, self.height, sequence([*down, *along]))
        return self.kernel_around(stmt, [self.line, self.acc], [self._emptied(*each) for each in ends])

    def _emptied(self, low: int, high: int) -> Stmt:
        place = Var("place", "int64")
        return loop_of(place, high - low, BufferStore(self.line, self.start, [place + low]))

    def _vectors(self, first: int, end: int, most: int, make: _Make) -> Iterator[Stmt]:
        """Yield the statements of the vectors from `first` up to `end`, `most` at once; the last overlaps the one before."""
        whole = (end - first) // (most * self.lanes)
        group = Var("group", "int64")
        if whole:
            starts = [group * (most * self.lanes) + (first + n * self.lanes) for n in range(most)]
            yield loop_of(group, whole, make(starts))
        begin = first + whole * most * self.lanes
        if begin < end:
            yield make([int64(each) for each in (*range(begin, end - self.lanes, self.lanes), end - self.lanes)])

    def _down(self, starts: list[Expr]) -> Stmt:
        """Combine the columns of a row of windows into the line, vector by vector."""
        tap = Var("tap", "int64")
        row = self.values[self.y] * self.rows.stride + tap * self.rows.step + self.rows.start
        inside, _, _, _, element = self.row_at(row)
        added = self._each(starts, lambda at, acc: self._combined(acc, element(at)))
        return sequence([
            self._each(starts, lambda at, acc: assign(acc, self.start)),
            loop_of(tap, self.rows.taps, added if inside is None else IfThenElse(inside, added, None)),
            self._each(starts, lambda at, acc: BufferStore(self.line, acc, [at])),
        ])  # fmt: skip

    def _along(self, starts: list[Expr]) -> Stmt:
        """Combine the line along the row, and store the epilogue."""

        def combined(j: int, at: Expr, acc: TensorLoad) -> Stmt:
            read = tirx.BufferLoad(self.line, [at * self.columns.stride + j * self.columns.step])
            return self._combined(acc, read) if j else assign(acc, read)

        steps = [self._each(starts, partial(combined, j)) for j in range(self.columns.taps)]
        return sequence([*steps, self._each(starts, self._store)])

    def _combined(self, acc: TensorLoad, read: Expr) -> Stmt:
        return self.updated(acc, (0, 0), self.values, read)

    def _each(self, starts: list[Expr], store: Callable[[Expr, TensorLoad], Stmt]) -> Stmt:
        """Build a statement for each vector, of a column of its lanes and the accumulator."""

        def stored(start: Expr, lane: Expr, acc: TensorLoad) -> Stmt:
            return store(start + lane, acc)

        return sequence([self.vector([number], partial(stored, start)) for number, start in enumerate(starts)])

    def _store(self, at: Expr, acc: TensorLoad) -> Stmt:
        return self.finished(acc, self.result_at(self.values, self.values[self.y], at))
