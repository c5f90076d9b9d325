"""Schedule integer products of weights along runs, in int16 by groups that the weights prove: four products or more.

    for … rows of the result, tiles of four places:
        values[taps, columns] = sixteen channels of each column the tile reads, or the padding    (all taps of a unit)
        for blocks of filters, filters f:
            by the grouping of f:                  the weights hold its number
                acc[f, place] += across(for each place: the groups of all taps, each in int16, added up in int32)
        result[tile] = epilogue(start of f + acc[f, place])

Unlike in neon_c16.py, int16 holds sums of many products, and values are as they are. Code knows all groupings: the
weights of each filter choose one (weights/repack_groups.py). With more runs than a unit, blocks are loops around units.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ....memory import ALIGNMENT
from ....memory.liveness import aligned
from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.runs import RUN, SUMS, across, group, turned
from ...weights.repack_groups import RepackGroups, groupings
from ..line_buffer import loop_of
from .byte_columns import ByteColumns
from .integer_sum import IntegerSum
from .loops import by_value, in_tiles, vector
from .micro_kernel import MicroKernel
from .quad_windows import Tile

_SERIAL = 0
#: filters of a block
_WIDTHS = (8, 4)
#: places of a tile: at most the lanes of its sums
_ROWS = (4, 3)
#: most runs of a unit, and registers for its values and sums
_MOST_RUNS, _MOST_VALUES = 9, 25
#: instructions of eight products with their sums, by weights of trained networks, and of a unit around them
_PRODUCT, _AROUND = 1.27, 14
#: most instructions of eight products: neon_c16.py takes so many, or fewer without taps
_MOST_COST = 1.745


class NeonInt16Accumulate(ByteColumns):
    """Build the kernel. Raises NoMatch for other forms."""

    complemented = False
    repack: RepackGroups

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        if self.axes[self.x] < SUMS:
            raise NoMatch("a tile has four places")
        self.rows, self.within, self.runs, self.width = self._shape(machine.register_bytes)
        #: axes that are loops around a unit
        self.around = [var for var in self.others if self.axes[var] > 1 and var not in self.within]
        self.repack = self.pack(self._repacked())
        self.groupings = groupings(2 * self.repack.size)
        self.acc = buffer_of("acc", [self.width, SUMS], "uint32")
        self.parts = buffer_of("parts", [SUMS, SUMS], "uint32")
        size = prod(self.axes[var] for var in self.within) * self.runs
        self.values = buffer_of("values", [size * len(self.columns_of(self.rows)), RUN // 2], "uint16")

    def _shape(self, most: int) -> tuple[int, list[Var], int, int]:
        """Choose places, axes within a unit, its runs of channels and filters, with the fewest instructions.

        Buffers take `most` bytes. Raises NoMatch if other rules take fewer instructions.
        """
        others = [var for var in self.others if self.axes[var] > 1]
        runs = prod(self.axes[var] for var in others) * self.taps * (self.axes[self.c] // RUN)
        found = []
        for rows, within, width in product(_ROWS, (others, []), _WIDTHS):
            axes, columns = prod(self.axes[var] for var in within), len(self.columns_of(rows))
            for n in range(1, _MOST_RUNS // (axes * self.taps) + 1):
                values = n * axes * columns
                held = sum(aligned(each, ALIGNMENT) for each in (width * SUMS * 4, SUMS * SUMS * 4, values * RUN))
                fits = values + rows <= _MOST_VALUES and held <= most
                if fits and self.axes[self.f] % width == 0 and self.axes[self.c] % (n * RUN) == 0:
                    cost = self._cost(rows, n * axes * self.taps, runs, values / width)
                    found.append((cost, -rows, -len(within), -n, -width))
        least = min(found, default=None)
        if least is None or least[0] > _MOST_COST * 2 * runs * self.axes[self.x]:
            raise NoMatch("too many taps to unroll, or too few to gain")
        return -least[1], others if least[2] else [], -least[3], -least[4]

    def _cost(self, rows: int, size: int, runs: int, values: float) -> float:
        """Estimate the instructions of a filter and a row, by units of `size` runs; `values` are read for each filter."""
        units = runs // size
        around = _AROUND + size / 2 + (2 + 1.5 * values if units > 1 else 0)
        return units * self.row_cost(lambda places: _PRODUCT * 2 * size * places + around, rows)

    def _repacked(self) -> RepackGroups:
        """Return the layout of the weight."""
        taps = [self.tap] if self.tap is not None and self.taps > 1 else []
        unrolled = tuple(self.weight_places([*self.within, *taps]))
        unit = RUN * self.runs
        order = f"r k/{unit} f u k%{unit}/16 k%16"
        plain = self.sums_repack(self.width, order, [self.inner], unit, zero=self.zero, unrolled=unrolled)
        return RepackGroups(**vars(plain))

    def kernel(self) -> PrimFunc:
        """Build tiles, and blocks of filters in each or around all."""
        outer = self.outer()
        stmt = sequence(in_tiles(self.axes[self.x], self.rows, partial(self._tile, outer)))
        own = [self.acc, self.parts, self.values]
        return self.in_rows(stmt if self._single else self.in_blocks(stmt), outer, own)

    @property
    def _single(self) -> bool:
        """Return whether a filter is a single unit: its values stay for all blocks."""
        return self.repack.units == 1

    def _tile(self, outer: dict[Var, Expr], start: Expr, starts: range, rows: int) -> Stmt:
        loops = self.loops_over(self.around)
        axes = {**self.units, **outer, **loops}
        chunk, filter_ = Var("chunk", "int64"), Var("filter", "int64")
        chunks = self.axes[self.c] // (RUN * self.runs)
        indices = [replaced(index, axes) for index in self.weight.indices]
        unit = self.repack.linear(indices, self.repack.rest) * chunks + chunk
        read = self._read_unit(Tile(axes, chunk * self.runs, start, starts, rows))
        summed = For(filter_, int64(0), int64(self.width), _SERIAL, self._products(unit, filter_, rows))
        stored = self.stored(outer, start, self.block, rows)
        if self._single:
            known: dict[Var, Expr] = {chunk: int64(0)}
            return sequence([replaced(read, known), self.in_blocks(sequence([replaced(summed, known), *stored]))])
        inner = loop_of(chunk, chunks, sequence([read, summed]))
        zeros = [vector(SUMS, partial(self.zero_at, number)) for number in range(self.width)]
        return sequence([*zeros, self.nest(loops, inner), *stored])

    def _read_unit(self, tile: Tile) -> Stmt:
        columns, parts = self.columns_of(tile.rows), []
        extents = (range(self.axes[var]) for var in self.within)
        for n, (*point, run) in enumerate(product(*extents, range(self.runs))):
            axes = {**tile.axes, **dict(zip(self.within, map(int64, point)))}
            own = replace(tile, axes=axes, number=tile.number + run)
            parts.append(self.read(own, columns, n * len(columns)))
        return sequence(parts)

    def _products(self, unit: Expr, filter_: Expr, rows: int) -> Stmt:
        """Sum the products of a unit and a filter, by the grouping whose number the weights hold."""
        columns, size = self.columns_of(rows), self.repack.size
        points = size // self.taps // self.runs
        places = list(product(range(points), range(self.taps), range(self.runs)))

        def factors(half: int, row: int) -> tuple[int, int]:
            """Return the half of weights, and the run of values."""
            point, tap, run = places[half // 2]
            return half, (point * self.runs + run) * len(columns) + columns.index(row * self.stride + tap * self.step)

        def added(products: list[tuple[int, int]], row: int, first: bool, lane: Expr) -> BufferStore:
            at = (unit * self.width + filter_) * (size * RUN)
            weights = tirx.BufferLoad(self.packed, [self.block, at + lane])
            values = tirx.BufferLoad(self.values, [int64(0), lane])
            place = [int64(row), lane]
            sums = tirx.const(0, "int32") if first else tirx.BufferLoad(self.parts, place).astype("int32")
            return BufferStore(self.parts, group(sums, weights, values, products).astype("uint32"), place)

        def summed(groups: tuple[tuple[int, ...], ...]) -> Stmt:
            return sequence(
                [
                    vector(SUMS, partial(added, [factors(half, row) for half in each], row, n == 0))
                    for (n, each), row in product(enumerate(groups), range(rows))
                ]
            )

        def total(lane: Expr) -> BufferStore:
            places = (int64(min(row, rows - 1)) for row in range(SUMS))
            sums: Expr = across(*(tirx.BufferLoad(self.parts, [row, lane]).astype("int32") for row in places))
            if not self._single:
                sums = tirx.BufferLoad(self.acc, [filter_, lane]).astype("int32") + sums
            return BufferStore(self.acc, sums.astype("uint32"), [filter_, lane])

        held = [self.block, unit * self.width + filter_ + self.repack.numbers]
        chosen = tirx.BufferLoad(self.packed, held).astype("int32")
        *others, last = [summed(groups) for groups in self.groupings]
        found = by_value(chosen, reversed(list(enumerate(others))), last)
        return sequence([found, vector(SUMS, total)])

    def stored(self, outer: dict[Var, Expr], start: Expr, block: Expr, rows: int) -> list[Stmt]:
        """Store the epilogue of a tile of `rows` places: of a filter's places at once if they are neighbours in the result."""
        if not self.rows_last or rows < SUMS:
            return super().stored(outer, start, block, rows)
        filter_ = Var("filter", "int64")

        def result(lane: Expr) -> BufferStore:
            total = tirx.BufferLoad(self.acc, [filter_, lane]).astype("int32") + self.start_of(filter_)
            own = {**outer, self.x: start + lane, self.f: block * self.width + filter_}
            return BufferStore(*self.result(total, own))

        return [For(filter_, int64(0), int64(self.width), _SERIAL, vector(SUMS, result))]

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the sum of a place and a filter."""
        return turned(tirx.BufferLoad(self.acc, [lane, int64(row)]), row) + self.start_of(lane)
