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

from collections.abc import Callable, Iterator

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.quads import dots, neighbours, quads
from ..line_buffer import loop_of
from ..rule import RuleResult
from .product_schedule import product_schedule
from .quad_form import CHUNK, PLACES
from .quad_windows import Tile, vectors_of
from .tile_results import LANES, TileResults

_SERIAL, _VECTORIZED = 0, 2
#: of eight registers, those for sums: one less if values are read by words
_SUMS = 5


def quad_products(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.compact or not machine.quads:
        return
    yield from product_schedule(_Quads, kernel, repackable, machine)


class _Quads(TileResults):
    """Build the kernel. Raises Unknown for other forms."""

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        super().__init__(kernel, repackable)
        self.halves = 1 if machine.dots else 2
        if not self.dense:
            self.read_memory()
        sums = _SUMS if self.dense or machine.dots else _SUMS - 1
        self.width, self.rows = self.tile_shape(machine.registers * machine.lanes * sums // 32, machine.dots)
        half = self.chunk // 2
        order = "r k/4 f k%4" if machine.dots else f"r k/{self.chunk} k%{half}/2 f/8 k%{self.chunk}/{half} f%8 k%2"
        halves = 0 if machine.dots else self.chunk
        self.repack = self.sums_repack(self.width, order, [self.inner], self.chunk, zero=self.zero, halves=halves)
        self.packed = self.packed_by(self.repack)
        # unsigned: TVM joins buffers of one dtype, and another stage's, at indices of loops, would keep these in memory
        self.acc = buffer_of("acc", [self.rows, self.width], "uint32")
        places = [self.rows, self.steps] if self.dense else [len(vectors_of(self.rows)), PLACES]
        self.taps = 1 if self.tap is None else self.axes[self.tap]
        self.values = buffer_of("values", [self.halves, *places], f"uint{32 // self.halves}")

    def kernel(self) -> PrimFunc:
        outer = self.outer()
        own = [self.acc, self.values]
        block = Var("block", "int64")
        blocks = int64(self.axes[self.f] // self.width)
        stmt: Stmt = For(block, int64(0), blocks, _SERIAL, sequence(self._tiles(outer, block)))
        return self.in_rows(stmt, outer, own, self.packed)

    def _tiles(self, outer: dict[Var, Expr], block: Expr) -> list[Stmt]:
        """Build the tiles of a row."""
        whole, rest = divmod(self.axes[self.x], self.rows)
        tile = Var("tile", "int64")
        starts = range(0, whole * self.rows, self.rows)
        parts = [loop_of(tile, whole, self._tile(outer, tile * self.rows, starts, block, self.rows))]
        return (
            [*parts, self._tile(outer, int64(starts.stop), range(starts.stop, starts.stop + 1), block, rest)]
            if rest
            else parts
        )

    def _tile(self, outer: dict[Var, Expr], start: Expr, starts: range, block: Expr, rows: int) -> Stmt:
        groups = range(0, self.width, LANES)
        lanes = (
            LANES if self.dense or self.halves == 1 else LANES // 2
        )  # else LLVM loads 16 bytes and extracts their halves
        loops = {var: Var(var.name, "int64") for var in self.others}

        def vector(made: Callable[[Expr], Stmt], lanes: int = LANES) -> Stmt:
            lane = Var("lane", "int64")
            return For(lane, int64(0), int64(lanes), _VECTORIZED, made(lane))

        def zero(row: int, first: int) -> Stmt:
            def made(lane: Expr) -> Stmt:
                at = [
                    tirx.BufferLoad(self.packed, [block, (lane + first) * 4 + (self.repack.starts + n)])
                    for n in range(4)
                ]
                return BufferStore(self.acc, neighbours(*at).astype("uint32"), [int64(row), lane + first])

            return vector(made)

        def product(number: Expr, tap: Expr, step: int, row: int, first: int) -> Stmt:
            values = {**outer, **loops, **({} if self.tap is None else {self.tap: tap})}
            linear = self.repack.linear([replaced(index, values) for index in self.weight.indices], self.repack.rest)
            size = 4 // self.halves
            at = (linear * self.quads + (number * self.steps + step)) * (4 * self.width)
            at = at + first // LANES * (4 * LANES) + first % LANES * size

            def made(lane: Expr) -> Stmt:
                weights = [
                    neighbours(
                        *(
                            tirx.BufferLoad(self.packed, [block, lane * size + (at + 16 * half + n)])
                            for n in range(size)
                        )
                    )
                    for half in range(self.halves)
                ]
                held = [
                    tirx.BufferLoad(self.values, [int64(half), *self._place(row, rows, step)])
                    for half in range(self.halves)
                ]
                x = [each.astype(f"int{8 * size}") for each in held]
                sum_ = tirx.BufferLoad(self.acc, [int64(row), lane + first]).astype("int32")
                total = (
                    dots(sum_, weights[0], x[0])
                    if self.halves == 1
                    else quads(sum_, (weights[0], weights[1]), (x[0], x[1]))
                )
                return BufferStore(self.acc, total.astype("uint32"), [int64(row), lane + first])

            return vector(made, lanes)

        def summed(number: Expr, channels: int) -> Stmt:
            tile = Tile(outer, loops, number, start, starts, rows)
            tap = Var("tap", "int64")
            filled = self._neighbours(tile) if self.dense else self.loaded(tile, tap, self.taps, channels, self.values)
            products = [
                product(number, tap, step, row, first)
                for step in range(self.steps)
                for first in range(0, self.width, lanes)
                for row in range(rows)
            ]
            # a loop: unrolled, LLVM would keep the products of all taps, and spill
            inner = loop_of(tap, self.taps, sequence([*filled, *products]))
            for var, loop in reversed(loops.items()):
                inner = For(loop, int64(0), int64(self.axes[var]), _SERIAL, inner)
            return inner

        number = Var("quad", "int64")
        whole, rest = divmod(self.axes[self.c], self.chunk)
        parts = [zero(row, first) for row in range(rows) for first in groups]
        if whole:
            parts.append(loop_of(number, whole, summed(number, 4)))
        if rest:
            parts.append(summed(int64(whole), rest))
        return sequence([*parts, *self.stored(outer, start, block, rows)])

    def _place(self, row: int, rows: int, step: int) -> list[Expr]:
        """Return the indices of a row in `values`."""
        if self.dense:
            return [int64(row), int64(step)]
        vectors = vectors_of(rows)
        vector = row // PLACES
        return [int64(vector), int64(row - vectors[vector])]

    def _neighbours(self, tile: Tile) -> list[Stmt]:
        """Read the values of a tile whose channels are neighbours, for four steps of its sums."""
        parts: list[Stmt] = []
        for half in range(self.halves):
            for row in range(tile.rows):
                lane = Var("lane", "int64")
                size = 4 // self.halves
                channel = tile.number * CHUNK + half * (CHUNK // 2) + lane * size
                indices = [self._raw_at(tile.outer, tile.loops, channel + n, tile.start + row) for n in range(size)]
                at = [tirx.BufferLoad(self.raw.source, each) for each in indices]
                value = (neighbours(*at) ^ self.mask(half)).astype(f"uint{8 * size}")
                store = BufferStore(self.values, value, [int64(half), int64(row), lane])
                parts.append(For(lane, int64(0), int64(CHUNK // 4), _VECTORIZED, store))
        return parts

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the sum of a place and a filter."""
        return tirx.BufferLoad(self.acc, [int64(row), lane]).astype("int32")
