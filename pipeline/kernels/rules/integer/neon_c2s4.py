"""Schedule integer products of weights by four: products of bytes in int16, pairs of them in int32.

    for … rows of the result, blocks of filters, tiles of places:
        acc[places, filters] = start of the filters
        for q, i (and j unrolled):
            values[half, p] = channels 4 q (+ 2) and the next of each place, two bytes, or the padding
            acc[p, 0:8] += quads(weight[q, i, j, 0:8], values[p])
        result[tile] = epilogue(acc)

Values are as they are in memory, or the padding: their zero point. Weights are repacked with what it adds up to. The
second half of four values is complemented, and subtracted: so two products fit into int16. Sums of integers are exact
in any order. Sums and values stay in registers: there is no other workspace.
"""

from __future__ import annotations

from functools import partial
from math import ceil, prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.quads import dots, neighbours, quads
from ..line_buffer import loop_of
from .integer_sum import IntegerSum
from .loops import in_tiles, load_neighbours, over_tile, vector
from .micro_kernel import MicroKernel
from .quad_windows import CHUNK, LANES, PLACES, QuadWindows, Tile, vectors_of

#: widths of a block of filters, and places of a tile
_WIDTHS, _ROWS, _DENSE_ROWS = (32, 24, 16, 8), (8, 4, 3, 2, 1), (8, 6, 5, 4, 3, 2, 1)
#: of eight registers, those for sums: one less if values are read by words
_SUMS = 5


class NeonC2s4(QuadWindows):
    """Build the kernel. Raises NoMatch for other forms."""

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        sdot = "sdot" in machine.dots
        self.halves = 1 if sdot else 2
        if not self.dense:
            self.read_memory()
        sums = _SUMS if self.dense or sdot else _SUMS - 1
        self.width, self.rows = self._tile_shape(machine.registers * machine.lanes * sums // 32, sdot)
        half = self.chunk // 2
        order = "r k/4 f k%4" if sdot else f"r k/{self.chunk} k%{half}/2 f/8 k%{self.chunk}/{half} f%8 k%2"
        halves = 0 if sdot else self.chunk
        self.pack(self.width, order, [self.inner], self.chunk, zero=self.zero, halves=halves)
        # unsigned: TVM joins buffers of one dtype, and another stage's, at indices of loops, would keep these in memory
        self.acc = buffer_of("acc", [self.rows, self.width], "uint32")
        places = [self.rows, self.steps] if self.dense else [len(vectors_of(self.rows)), PLACES]
        self.values = buffer_of("values", [self.halves, *places], f"uint{32 // self.halves}")

    def _tile_shape(self, registers: int, sdot: bool) -> tuple[int, int]:
        """Choose filters and places of a tile with the fewest instructions; sums take so many registers at most."""
        terms = self.quads * prod(self.axes[var] for var in self.summed if not var.same_as(self.c))
        windows = self.border is not None or self.tap is not None

        def cost(width: int, rows: int) -> float:
            around = (8 if rows >= PLACES else 16) if windows else 0  # branches, loops, words of fewer bytes
            read = 3 * rows / 4 if self.dense else 8 * ceil(rows / PLACES) + around
            alone = (rows % PLACES if self.bytes else rows) if self.rows_last else 0
            stored = (rows + 2 * alone) * width
            multiplied = rows * width / 4 if sdot else rows * width * 3 / 4 + 2 * rows
            return terms * (multiplied + width / 8 + read + 3) + 2 * stored

        rows = _DENSE_ROWS if self.dense else _ROWS
        return self.cheapest_tile(_WIDTHS, rows, cost, lambda width, high: high * width // 4 <= registers)

    def kernel(self) -> PrimFunc:
        """Build blocks of filters, with tiles of places in each."""
        outer, block = self.outer(), Var("block", "int64")
        tiles = in_tiles(self.axes[self.x], self.rows, partial(self._tile, outer, block))
        stmt = loop_of(block, self.axes[self.f] // self.width, sequence(tiles))
        return self.in_rows(stmt, outer, [self.acc, self.values])

    def _tile(self, outer: dict[Var, Expr], block: Expr, start: Expr, starts: range, rows: int) -> Stmt:
        # with quads of all lanes, LLVM loads 16 bytes and extracts their halves
        lanes = LANES if self.dense or self.halves == 1 else LANES // 2
        loops, size = self.loops_over(self.others), 4 // self.halves

        def zero(row: int, lane: Expr) -> BufferStore:
            return BufferStore(self.acc, self.start_of(block, lane).astype("uint32"), [int64(row), lane])

        def product(number: Expr, tap: Expr, step: int, row: int, first: int, lane: Expr) -> BufferStore:
            values = {**outer, **loops, **self.at_tap(tap)}
            linear = self.repack.linear([replaced(index, values) for index in self.weight.indices], self.repack.rest)
            at = (linear * self.quads + (number * self.steps + step)) * (4 * self.width)
            at = at + first // LANES * (4 * LANES) + first % LANES * size
            place, halves = self._place(row, rows, step), range(self.halves)
            weights = [load_neighbours(self.packed, [block], lane * size, size, at + 16 * half) for half in halves]
            x = [tirx.BufferLoad(self.values, [int64(half), *place]).astype(f"int{8 * size}") for half in halves]
            sum_ = tirx.BufferLoad(self.acc, [int64(row), lane + first]).astype("int32")
            one = self.halves == 1
            total = dots(sum_, weights[0], x[0]) if one else quads(sum_, (weights[0], weights[1]), (x[0], x[1]))
            return BufferStore(self.acc, total.astype("uint32"), [int64(row), lane + first])

        def summed(number: Expr, channels: int) -> Stmt:
            tile = Tile({**outer, **loops}, number, start, starts, rows)
            tap = Var("tap", "int64")
            filled = self._neighbours(tile) if self.dense else self.loaded(tile, tap, self.taps, channels, self.values)
            products = [
                vector(lanes, partial(product, number, tap, step, row, first))
                for step in range(self.steps)
                for first in range(0, self.width, lanes)
                for row in range(rows)
            ]
            # a loop: unrolled, LLVM would keep the products of all taps, and spill
            return self.nest(loops, loop_of(tap, self.taps, sequence([*filled, *products])))

        number = Var("quad", "int64")
        whole, rest = divmod(self.axes[self.c], self.chunk)
        parts = over_tile(rows, self.width, LANES, zero)
        if whole:
            parts.append(loop_of(number, whole, summed(number, 4)))
        if rest:
            parts.append(summed(int64(whole), rest))
        return sequence([*parts, *self.stored(outer, start, block, rows)])

    def _place(self, row: int, rows: int, step: int) -> list[Expr]:
        """Return the indices of a row in `values`."""
        if self.dense:
            return [int64(row), int64(step)]
        vector_ = row // PLACES
        return [int64(vector_), int64(row - vectors_of(rows)[vector_])]

    def _neighbours(self, tile: Tile) -> list[Stmt]:
        """Read the values of a tile whose channels are neighbours, for four steps of its sums."""
        size = 4 // self.halves

        def value(half: int, row: int, lane: Expr) -> BufferStore:
            channel = tile.number * CHUNK + half * (CHUNK // 2) + lane * size
            loads = [self.raw_at({**tile.axes, self.c: channel + n}, tile.start + row) for n in range(size)]
            word = (neighbours(*loads) ^ self.mask(half)).astype(f"uint{8 * size}")
            return BufferStore(self.values, word, [int64(half), int64(row), lane])

        return [
            vector(CHUNK // 4, partial(value, half, row)) for half in range(self.halves) for row in range(tile.rows)
        ]

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the sum of a place and a filter."""
        return tirx.BufferLoad(self.acc, [int64(row), lane]).astype("int32")
