"""Schedule integer products of weights along runs: sixteen neighbouring channels of a place with those of each filter.

    for … rows of the result, blocks of filters, tiles of places:
        acc[places, filters, 0:4] = 0
        for i, runs of channels (unrolled if few):
            values[column] = sixteen channels of each column the tile reads, or the padding
            for taps j, unrolled:
                acc[p, f, 0:4] += runs(weight[i, j, run, f], values[p · stride + j])
        result[tile] = epilogue(start of f + Σ acc[p, f])

Values are as they are in memory, or the padding: their zero point. Weights are repacked with what it adds up to. The
second half of a run is complemented, and subtracted: so two products fit into int16. Unlike for quads, no value is
copied to all lanes, and columns are read once for all taps. Sums and values stay in registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.index_grid import Unknown
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.quads import neighbours
from ....tir.operators.runs import RUN, SUMS, runs, totals
from ..line_buffer import loop_of
from ..rule import RuleResult
from .byte_columns import ByteColumns, in_vector
from .product_schedule import product_schedule
from .quad_windows import Tile

_SERIAL = 0
#: filters and places of a tile
_WIDTHS, _ROWS = (16, 12, 8, 4), (8, 6, 5, 4, 3, 2, 1)
#: registers for other values than sums and columns; with one tap, for others than sums, and most sums: LLVM reads early
_OTHERS, _EARLY, _ALONE = 3, 12, 16
#: most taps, since they are unrolled
_MOST_TAPS = 8
#: most products of a tile without loops; tiles of a row for which it pays to keep weights in registers, or on the stack
_UNROLLED, _MANY_TILES = 64, 4
#: most runs of a loop that LLVM unrolls as well itself
_UNROLLED_BY_LLVM = 2


def byte_runs(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.compact or not machine.quads or machine.dots:
        return
    yield from product_schedule(_Runs, kernel, repackable, machine)


class _Runs(ByteColumns):
    """Build the kernel. Raises Unknown for other forms."""

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        super().__init__(kernel, repackable)
        if self.taps > _MOST_TAPS:
            raise Unknown("too many taps to unroll")
        self.width, self.rows = self._shape(machine.registers * machine.lanes // SUMS)
        self.repack = self.sums_repack(self.width, "r k/16 f k%16", [self.inner], RUN, zero=self.zero, halves=RUN)
        self.packed = self.packed_by(self.repack)
        summed, one_row = prod(self.axes[var] for var in self.summed), self.axes[self.c] * self.taps
        #: whether a tile has no loops: filters follow each other then, so that few sums are held at once
        self.alone = (
            summed == one_row > _UNROLLED_BY_LLVM * RUN
            and self.rows > 1
            and summed * self.width * self.rows <= _UNROLLED * RUN
        )
        #: whether registers hold the values of a tile for all blocks, rather than weights of a block for all tiles
        self.few = self.alone and self.axes[self.x] // self.rows < _MANY_TILES
        held = len(self.columns_of(self.rows)) * (self.axes[self.c] // RUN if self.alone else 1)
        # unsigned: see quad_products.py
        self.acc = buffer_of("acc", [self.rows, self.width * SUMS], "uint32")
        self.values = buffer_of("values", [held, RUN // 2], "uint16")

    def _shape(self, registers: int) -> tuple[int, int]:
        """Choose filters and places of a tile with the fewest instructions."""
        places, steps = self.axes[self.x], prod(self.axes[var] for var in self.summed) // (self.taps * RUN)
        around = 8 if self.border is not None else 3

        def cost(width: int, rows: int) -> float:
            step = self.taps * width * (3 * rows + 0.6) + 2 * len(self.columns_of(rows)) + around
            return steps * step + 3 * rows * width

        def total(width: int, rows: int) -> float:
            whole, rest = divmod(places, rows)
            return (whole * cost(width, rows) + (cost(width, rest) if rest else 0)) / width

        def fits(sums: int, columns: int) -> bool:
            most = registers * 3 // 4 if self.taps > 1 else min(registers - _EARLY, _ALONE)
            return sums <= most and columns <= registers // 4 and sums + columns + _OTHERS <= registers

        found = [
            (total(width, rows), width, rows)
            for width in _WIDTHS if self.axes[self.f] % width == 0
            for rows in _ROWS if rows <= places and fits(rows * width, len(self.columns_of(rows)))
        ]  # fmt: skip
        if not found:
            raise Unknown("the filters are not whole vectors")
        return min(found)[1:]

    def kernel(self) -> PrimFunc:
        outer = self.outer()
        stmt = sequence(self._tiles(outer))
        return self.in_rows(stmt if self.few else self.in_blocks(stmt), outer, [self.acc, self.values], self.packed)

    def _tiles(self, outer: dict[Var, Expr]) -> list[Stmt]:
        """Build the tiles of a row."""
        whole, rest = divmod(self.axes[self.x], self.rows)
        tile = Var("tile", "int64")
        starts = range(0, whole * self.rows, self.rows)
        around = self.in_blocks if self.few else lambda stmt: stmt
        parts = [loop_of(tile, whole, around(self._tile(outer, tile * self.rows, starts, self.rows)))]
        last = range(starts.stop, starts.stop + 1)
        return [*parts, around(self._tile(outer, int64(starts.stop), last, rest))] if rest else parts

    def _tile(self, outer: dict[Var, Expr], start: Expr, starts: range, rows: int) -> Stmt:
        others = [var for var in self.summed if not var.same_as(self.tap) and not var.same_as(self.c)]
        around = {var: Var(var.name, "int64") for var in others if self.axes[var] > 1}
        loops: dict[Var, Expr] = {var: around.get(var, int64(0)) for var in others}
        run = Var("run", "int64")
        tile = Tile(outer, loops, run, start, starts, rows)
        columns, count = self.columns_of(rows), self.axes[self.c] // RUN

        def product(run: Expr, tap: int, row: int, filter_: int, first: bool = False, own: int = 0) -> Stmt:
            values = {**outer, **loops, **({} if self.tap is None else {self.tap: int64(tap)})}
            linear = self.repack.linear([replaced(index, values) for index in self.weight.indices], self.repack.rest)
            at = ((linear * (self.axes[self.c] // RUN) + run) * self.width + filter_) * RUN
            column = columns.index(row * self.stride + tap * self.step)

            def made(lane: Expr) -> Stmt:
                weights = neighbours(
                    *(tirx.BufferLoad(self.packed, [self.block, lane * SUMS + (at + n)]) for n in range(SUMS))
                )
                x = neighbours(*(tirx.BufferLoad(self.values, [int64(column + own), lane * 2 + n]) for n in (0, 1)))
                place = [int64(row), lane + filter_ * SUMS]
                sums = tirx.const(0, "int32") if first else tirx.BufferLoad(self.acc, place).astype("int32")
                return BufferStore(self.acc, runs(sums, weights, x).astype("uint32"), place)

            return in_vector(made)

        if self.alone:
            reads = [self.read(replace(tile, number=int64(n)), columns, n * len(columns)) for n in range(count)]
            products = [
                product(int64(n), tap, row, filter_, n == tap == 0, n * len(columns))
                for filter_ in range(self.width) for n in range(count) for tap in range(self.taps) for row in range(rows)
            ]  # fmt: skip
            return sequence([*reads, *products, *self.stored(outer, start, self.block, rows)])
        every = [(row, filter_) for row in range(rows) for filter_ in range(self.width)]

        def zero(row: int, filter_: int) -> Stmt:
            return in_vector(
                lambda lane: BufferStore(self.acc, tirx.const(0, "uint32"), [int64(row), lane + filter_ * SUMS])
            )

        zeros = [zero(*at) for at in every]
        products = [
            product(run, tap, row, filter_)
            for tap in range(self.taps)
            for filter_ in range(self.width)
            for row in range(rows)
        ]
        inner = loop_of(run, count, sequence([self.read(tile, columns), *products]))
        for var, loop in reversed(around.items()):
            inner = For(loop, int64(0), int64(self.axes[var]), _SERIAL, inner)
        return sequence([*zeros, inner, *self.stored(outer, start, self.block, rows)])

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the sum of a place and a filter."""
        four = [tirx.BufferLoad(self.acc, [int64(row), lane * SUMS + n]) for n in range(SUMS)]
        return totals(*four) + self.start_of(lane)
