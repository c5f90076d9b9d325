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

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product as combinations
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.quads import neighbours
from ....tir.operators.runs import RUN, SUMS, runs, totals
from ..line_buffer import loop_of
from .integer_sum import IntegerSum
from .loops import by_value, guarded, in_tiles, load_neighbours, over_tile, vector
from .micro_kernel import MicroKernel
from .quad_windows import QuadWindows, Tile

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
#: most tiles with padding in a row, each read by code of its own
_MOST_EDGES = 4


class NeonC16(QuadWindows):
    """Build the kernel; `values` are the columns of a tile, filters are read in blocks numbered `block`. Raises NoMatch for other forms."""

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.read_memory()
        if not (self.adjacent or self.axes[self.x] == 1) or self.axes[self.c] % RUN:
            raise NoMatch("channels are not runs")
        self.block = Var("block", "int64")
        if self.taps > _MOST_TAPS:
            raise NoMatch("too many taps to unroll")
        self.width, self.rows = self._shape(machine.registers * machine.lanes // SUMS)
        self.pack(self.width, "r k/16 f k%16", [self.inner], RUN, zero=self.zero, halves=RUN)
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
        # unsigned: see neon_c2s4.py
        self.acc = buffer_of("acc", [self.rows, self.width * SUMS], "uint32")
        self.values = buffer_of("values", [held, RUN // 2], "uint16")

    def _shape(self, registers: int) -> tuple[int, int]:
        """Choose filters and places of a tile with the fewest instructions."""
        steps = prod(self.axes[var] for var in self.summed) // (self.taps * RUN)
        around = 8 if self.border is not None else 3

        def cost(width: int, rows: int) -> float:
            step = self.taps * width * (3 * rows + 0.6) + 2 * len(self.columns_of(rows)) + around
            return steps * step + 3 * rows * width

        def fits(width: int, rows: int) -> bool:
            sums, columns = rows * width, len(self.columns_of(rows))
            most = registers * 3 // 4 if self.taps > 1 else min(registers - _EARLY, _ALONE)
            return sums <= most and columns <= registers // 4 and sums + columns + _OTHERS <= registers

        return self.cheapest_tile(_WIDTHS, _ROWS, cost, fits)

    def kernel(self) -> PrimFunc:
        """Build blocks of filters, with tiles of places in each, or the other way around."""
        outer = self.outer()
        around = self._in_blocks if self.few else lambda stmt: stmt
        tiles = in_tiles(self.axes[self.x], self.rows, lambda *at: around(self._tile(outer, *at)))
        stmt = sequence(tiles)
        return self.in_rows(stmt if self.few else self._in_blocks(stmt), outer, [self.acc, self.values])

    def _tile(self, outer: dict[Var, Expr], start: Expr, starts: range, rows: int) -> Stmt:
        others = [var for var in self.others if self.axes[var] > 1]
        loops, run = self.loops_over(others), Var("run", "int64")
        axes = {**self.units, **outer, **loops}
        tile = Tile(axes, run, start, starts, rows)
        columns, count = self.columns_of(rows), self.axes[self.c] // RUN

        def product(run: Expr, tap: int, row: int, filter_: int, first: bool = False, own: int = 0) -> Stmt:
            weights = [replaced(index, {**axes, **self.at_tap(tap)}) for index in self.weight.indices]
            linear = self.repack.linear(weights, self.repack.rest)
            at = ((linear * count + run) * self.width + filter_) * RUN
            column = columns.index(row * self.stride + tap * self.step)

            def summed(lane: Expr) -> BufferStore:
                factor = load_neighbours(self.packed, [self.block], lane * SUMS, SUMS, at)
                x = load_neighbours(self.values, [int64(column + own)], lane * 2, 2)
                place = [int64(row), lane + filter_ * SUMS]
                sums = tirx.const(0, "int32") if first else tirx.BufferLoad(self.acc, place).astype("int32")
                return BufferStore(self.acc, runs(sums, factor, x).astype("uint32"), place)

            return vector(SUMS, summed)

        if self.alone:
            reads = [self._read(replace(tile, number=int64(n)), columns, n * len(columns)) for n in range(count)]
            products = [
                product(int64(n), tap, row, filter_, n == tap == 0, n * len(columns))
                for filter_ in range(self.width) for n in range(count) for tap in range(self.taps) for row in range(rows)
            ]  # fmt: skip
            return sequence([*reads, *products, *self.stored(outer, start, self.block, rows)])
        zeros = over_tile(
            rows,
            self.width * SUMS,
            SUMS,
            lambda row, lane: BufferStore(self.acc, tirx.const(0, "uint32"), [int64(row), lane]),
        )
        every = combinations(range(self.taps), range(self.width), range(rows))
        products = [product(run, tap, row, filter_) for tap, filter_, row in every]
        inner = loop_of(run, count, sequence([self._read(tile, columns), *products]))
        return sequence([*zeros, self.nest(loops, inner), *self.stored(outer, start, self.block, rows)])

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the sum of a place and a filter."""
        four = [tirx.BufferLoad(self.acc, [int64(row), lane * SUMS + n]) for n in range(SUMS)]
        return totals(*four) + self.start_of(self.block, lane)

    def _in_blocks(self, stmt: Stmt) -> Stmt:
        """Loop over blocks of filters."""
        block = Var("block", "int64")
        return loop_of(block, self.axes[self.f] // self.width, replaced(stmt, {self.block: block}))

    def _read(self, tile: Tile, columns: Sequence[int], own: int = 0) -> Stmt:
        """Read the columns of a tile: by code of its own for each tile with padding."""

        def filled(first: Expr, inside: Sequence[bool]) -> Stmt:
            def pair(n: int, lane: Expr) -> BufferStore:
                value = self._pair(tile, first + columns[n], lane, inside[n])
                return BufferStore(self.values, value, [int64(own + n), lane])

            return sequence([vector(RUN // 2, partial(pair, n)) for n in range(len(columns))])

        each = {
            start: tuple(self.low <= start * self.stride + at < self.high for at in columns) for start in tile.starts
        }
        edges = [start for start, inside in each.items() if not all(inside)]
        if len(edges) > _MOST_EDGES:
            raise NoMatch("the padding is wider than a few tiles")
        whole = filled(tile.start * self.stride, [True] * len(columns)) if len(edges) < len(each) else None
        cases = [(start, filled(int64(start * self.stride), each[start])) for start in edges]
        there = by_value(tile.start, cases, whole)
        condition = self.row_inside({**tile.axes, self.c: int64(0)}, self.by_row)
        return guarded(condition, [there], [filled(int64(0), [False] * len(columns))])

    def _pair(self, tile: Tile, column: Expr, lane: Expr, inside: bool) -> Expr:
        """Return two bytes of a column, complemented in the second half."""
        word: Expr = tirx.const((self.zero & 0xFF) * 0x0101, "uint16")
        if inside:
            axes = [{**tile.axes, self.c: tile.number * RUN + lane * 2 + n} for n in (0, 1)]
            word = neighbours(*(self.raw_at(each, column) for each in axes)).astype("uint16")
            if self.dtype == "uint8":
                word = tirx.bitwise_xor(word, tirx.const(0x8080, "uint16"))
        second = tirx.shift_right(lane, int64(2)).astype("uint16")  # 0 in the first half, else 1
        return tirx.bitwise_xor(word, tirx.const(0, "uint16") - second)
