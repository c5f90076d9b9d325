"""Copy rows of a plane into a padded line buffer: see rules/sliding_window.py.

    lines[row, phase, place] = plane[row, place · stride + phase], or the padding

Columns one stride apart lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from tvm import sym, tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ...targets import Machine
from ...tir.expressions import conjuncts, is_choice, loads, replaced, uses
from ...tir.index_grid import Unknown, holds_along
from ...tir.loop_nests import are_axes, buffer_of, int64, sequence
from ...tir.row_window import takes_a_row
from .loop_peeling import has_skippable_padding
from .sliding_plane import MOST_UNROLLED, Plane

#: largest number of vectors copied unrolled, without a loop
_UNROLLED = 16
#: least lanes of such a vector: for vectors of two LLVM makes code that its own verifier refuses
_FEW = 4
_SERIAL, _VECTORIZED = 0, 2


class DataRow(NamedTuple):
    """Hold a data row: condition against padding, first and end real column, padding, element at a column."""

    inside: Expr | None
    first: int
    end: int
    zero: Expr
    element: Callable[[Expr], Expr]


class LineBuffer(Plane):
    """Hold a plane in padded lines: `chunks` vectors of `lanes`, and the halo of a row's last window after them."""

    def __init__(self, kernel: PrimFunc, machine: Machine):
        super().__init__(kernel)
        self.lanes, self.compact, self.register_bytes = machine.lanes, machine.compact, machine.register_bytes
        self.transposes = machine.transposes
        # shorter vectors waste less; of joined registers, they take fewer
        while self.lanes // 2 >= max(self.width, min(_FEW, machine.lanes // machine.joined)):
            self.lanes //= 2
        self.chunks = -(-self.width // self.lanes)
        self.phase_width = self.chunks * self.lanes + (self.columns.taps - 1) * self.columns.step // self.columns.stride
        self.rolled = self.compact or self.rows.taps * self.columns.taps > MOST_UNROLLED
        #: whether all rows of a plane are summed at once, all taps unrolled: rows of padding then need no lines
        self.whole = False
        self._kept: dict[int, range] = {}
        # axes around the plane become loops; axes of extent 1 become 0
        around = [axis for axis in self.outer if isinstance(axis, Var) and self.axes[axis] > 1]
        self.loops = {axis: Var("plane", "int64") for axis in around}
        single = {axis.var: int64(0) for axis in self.window.iter_vars if self.axes[axis.var] == 1}
        self.values: dict[Var, Expr] = {**single, **self.loops}

    @property
    def in_region(self) -> bool:
        """Return whether the kernel computes a window of rows in a streaming region, with padding."""
        return self.padding is not None and takes_a_row(self.original)

    @property
    def needed(self) -> int:
        """Count the columns that a row of the result needs, padding included."""
        return (self.width - 1) * self.columns.stride + (self.columns.taps - 1) * self.columns.step + 1

    def lines_of(self, rows: int) -> Var:
        """Declare the line buffer for so many rows of the result."""
        return buffer_of(
            "lines", (len(self.kept(rows)), self.columns.stride, self.phase_width), str(self.data.ty.dtype)
        )

    def kept(self, rows: int) -> range:
        """Return the numbers of the lines, halo included, for so many rows of the result: of a whole plane, those not of padding."""
        count = self.count_of(rows)
        if count not in self._kept:
            self._kept[count] = self._without_padding(count)
        return self._kept[count]

    def _without_padding(self, count: int) -> range:
        if (
            not self.whole
            or self.padding is None
            or self.in_region
            or not has_skippable_padding(self.window, [self.padding])
        ):
            return range(count)
        inside = (self.row_at(self.rows.start + number).inside for number in range(count))
        there = [n for n, each in enumerate(inside) if each is None or not sym.Analyzer().can_prove_equal(each, False)]
        return range(there[0], there[-1] + 1) if there else range(count)

    def count_of(self, rows: int) -> int:
        """Count the lines, halo included, for so many rows of the result."""
        return (rows - 1) * self.rows.stride + (self.rows.taps - 1) * self.rows.step + 1

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
        empty = [
            (low, high) if some else None
            for low, high, some in ((0, first_end, first > 0), (last_start, wide, end < wide))
        ]
        before, after = [[self._columns(lines, line, *each, lambda column: zero)] if each else [] for each in empty]
        copied = self._columns(lines, line, first, end, element)
        stmt = copied
        if inside is not None:
            stmt = IfThenElse(inside, copied, self._columns(lines, line, first, end, lambda column: zero))
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
            lane = Var("lane", "int64")
            yield For(lane, int64(0), int64(lanes), _VECTORIZED, store(lane + start))

    def first_row(self, group: Expr, count: int) -> Expr:
        """Return the first row of a group of `count`; the last group may overlap the one before."""
        if self.height == count:
            return int64(0)
        first = group * count
        return first if self.height % count == 0 else tirx.min(first, int64(self.height - count))

    def met_rows(self, number: int, count: int) -> list[tuple[int, int]]:
        """Return the rows of `count` that need a row of the data, each with its tap."""
        taps = [(row, divmod(number - row * self.rows.stride, self.rows.step)) for row in range(count)]
        return [(row, i) for row, (i, rest) in taps if rest == 0 and 0 <= i < self.rows.taps]

    def row_at(self, row: Expr) -> DataRow:
        """Read a row of the data. Raises Unknown for padding of another form."""
        if self.padding is None:
            outer = [self.outside(index) for index in self.indices[:-2]]
            zero = tirx.const(0, str(self.data.ty.dtype))
            return DataRow(None, 0, self.needed, zero, lambda column: tirx.BufferLoad(self.data, [*outer, row, column]))
        block = self.padding
        value = block.body.value
        if not is_choice(value):
            raise Unknown("the padding is not a select")
        condition, inside, zero = value.args
        axes = [axis.var for axis in block.iter_vars]
        if not are_axes(block, list(block.body.indices)) or loads(zero):
            raise Unknown("the padding is not indexed by its axes")
        y, x = axes[-2:]
        across = [each for each in conjuncts(condition) if uses(each, x)]
        along = [each for each in conjuncts(condition) if not uses(each, x)]
        if any(uses(each, var) for each in across for var in axes[:-1]):
            raise Unknown("the column padding depends on other axes")
        values: dict[Var, Expr] = dict(zip(axes, (self.outside(index) for index in self.indices[:-2])))
        values[y] = row
        extent = int(block.iter_vars[-1].dom.extent)
        there = np.ones(extent, bool)
        for each in across:
            there &= holds_along(each, x, extent)
        if not there.any():
            raise Unknown("all columns are padding")
        first, end = int(there.argmax()), extent - int(there[::-1].argmax())
        if not there[first:end].all():
            raise Unknown("the unpadded columns are not contiguous")

        def element(column: Expr) -> Expr:
            return replaced(inside, {**values, x: column})

        row_there = [replaced(each, values) for each in along]
        return DataRow(tirx.all(*row_there) if row_there else None, first, min(end, self.needed), zero, element)

    def outside(self, index: Expr) -> Expr:
        """Substitute the loops around the plane into an index."""
        return replaced(index, self.values)


def _each_of(first: int, end: int, store: Callable[[Expr], Stmt]) -> Stmt:
    place = Var("place", "int64")
    return loop_of(place, end - first, store(place + first))


def loop_of(var: Var, extent: int, body: Stmt) -> Stmt:
    """Build a loop, or its body alone with `var` 0 if it runs once."""
    if extent == 1:
        return replaced(body, {var: int64(0)})
    return For(var, int64(0), int64(extent), _SERIAL, body)
