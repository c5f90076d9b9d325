"""Copy rows of a plane into a padded line buffer: see rules/sliding_window.py.

    lines[row, phase, place] = plane[row, place · stride + phase], or the padding

Columns one stride apart lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from tvm import sym
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ...targets import Machine
from ...tir.expressions import replaced
from ...tir.loop_nests import int64, sequence
from ...tir.row_window import takes_a_row
from .fused_sum import vector_loop
from .sliding_plane import MOST_UNROLLED, Plane

#: largest number of vectors copied unrolled, without a loop
_UNROLLED = 16
#: least lanes of such a vector: for vectors of two LLVM makes code that its own verifier refuses
_FEW = 4
_SERIAL = 0


class LineBuffer(Plane):
    """Hold a plane in padded lines: `chunks` vectors of `lanes`, and the halo of a row's last window after them."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel)
        self.compact, self.register_bytes, self.transposes = machine.compact, machine.register_bytes, machine.transposes
        self.lanes = line_lanes(self.width, machine)
        self.chunks = -(-self.width // self.lanes)
        self.phase_width = self.chunks * self.lanes + (self.columns.taps - 1) * self.columns.step // self.columns.stride
        self.rolled = self.compact or self.rows.taps * self.columns.taps > MOST_UNROLLED
        #: whether all rows of a plane are summed at once, all taps unrolled, and rows of padding need no lines
        self.whole = False

    @property
    def in_region(self) -> bool:
        """Return whether the kernel computes a window of rows in a streaming region, with padding."""
        return self.padding is not None and takes_a_row(self.original)

    def kept(self, rows: int) -> range:
        """Return the numbers of the lines, halo included, for so many rows of the result: of a whole plane, those not of padding."""
        return self._of_plane if self.whole else range(self.count_of(rows))

    @cached_property
    def _of_plane(self) -> range:
        count = self.count_of(self.height)
        inside = (self.row_at(self.rows.start + number).inside for number in range(count))
        there = [n for n, each in enumerate(inside) if each is None or not sym.Analyzer().can_prove_equal(each, False)]
        return range(there[0], there[-1] + 1) if there else range(count)

    def filled(self, lines: Var, start: Expr, count: int) -> Stmt:
        """Fill `lines` for a band of `count` rows: each line from its row, or with padding."""
        line = Var("line", "int64")
        kept = self.kept(count)
        row = start * self.rows.stride + (line + kept.start) + self.rows.start
        inside, first, end, zero, element = self.row_at(row)
        wide = self.columns.stride * self.phase_width
        overlapping = self.columns.stride == 1 and not self.compact and end - first >= _FEW
        if overlapping:
            # a vector of padding may reach into the row, which follows
            first_end, last_start = max(first, min(_FEW, end)), min(end, max(wide - _FEW, first))
        else:
            first_end, last_start = first, end

        def empty(low: int, high: int) -> Stmt:
            return self._columns(lines, line, low, high, lambda column: zero)

        before = [empty(0, first_end)] if first > 0 else []
        after = [empty(last_start, wide)] if end < wide else []
        stmt = self._columns(lines, line, first, end, element)
        if inside is not None:
            stmt = IfThenElse(inside, stmt, empty(first, end))
        # in the order of their places: of stores that fill a vector in another one, LLVM 22 (SROA) merges values before it has them
        parts = [*before, *after, stmt] if overlapping else [*before, stmt, *after]
        return For(line, int64(0), int64(len(kept)), _SERIAL, sequence(parts))

    def _columns(self, lines: Var, line: Expr, low: int, high: int, element: Callable[[Expr], Expr]) -> Stmt:
        """Copy columns `low` up to `high` of a line, one phase after the other."""
        stride, parts = self.columns.stride, []
        for phase in range(stride):
            first, end = -(-(low - phase) // stride), -(-(high - phase) // stride)
            if first >= end:
                continue

            def store(place: Expr, phase: int = phase) -> Stmt:
                return BufferStore(lines, element(place * stride + phase), [line, int64(phase), place])

            if self.compact or (stride > 1 and not self.transposes):
                parts.append(_each_of(first, end, store))
            else:
                parts += self._in_vectors(first, end, store)
        return sequence(parts)

    def _in_vectors(self, first: int, end: int, store: Callable[[Expr], Stmt]) -> Iterator[Stmt]:
        """Yield `store` from `first` up to `end`, in vectors of equal length, the last overlapping the one before.

        LLVM turns a loop over single elements into memcpy or memset, which some C libraries do a few bytes at a time; with
        a stride it would gather them (see codegen/expand/strided_loads.py).
        """
        lanes = self.lanes
        while lanes > end - first:
            lanes //= 2
        if lanes < _FEW or (end - first) // lanes > _UNROLLED:
            yield _each_of(first, end, store)
            return
        for start in (*range(first, end - lanes, lanes), end - lanes):
            yield vector_loop(lanes, store, start)


def line_lanes(width: int, machine: Machine) -> int:
    """Return the lanes of the vectors of a padded line: shorter ones waste less; of joined registers, they take fewer."""
    lanes = machine.lanes
    while lanes // 2 >= max(width, min(_FEW, machine.lanes // machine.lmul)):
        lanes //= 2
    return lanes


def _each_of(first: int, end: int, store: Callable[[Expr], Stmt]) -> Stmt:
    place = Var("place", "int64")
    return loop_of(place, end - first, store(place + first))


def loop_of(var: Var, extent: int, body: Stmt) -> Stmt:
    """Build a loop, or its body alone with `var` 0 if it runs once."""
    if extent == 1:
        return replaced(body, {var: int64(0)})
    return For(var, int64(0), int64(extent), _SERIAL, body)
