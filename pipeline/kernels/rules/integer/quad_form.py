"""Match sums of integer products that can be taken by four, choose the shape of their tiles, and store their results.

Four neighbouring places are stored at once where the result has them side by side: see neon_c2s4.py.
"""

from __future__ import annotations

from functools import partial
from math import ceil, prod

from tvm import sym, tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, IntImm, Stmt

from ....targets import Machine
from ....tir.expressions import uses
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import int64
from ....tir.operators.quads import byte, couple
from .integer_sum import IntegerSum
from .loops import vector
from .micro_kernel import MicroKernel
from .sum_builder import SumBuilder

#: channels that are neighbours in memory are read by so many; places side by side of a tile
CHUNK, PLACES = 16, 4
#: lanes of vectors of filters
LANES = 8
#: widths of a block of filters, and places of a tile
_WIDTHS, _ROWS, _DENSE_ROWS = (32, 24, 16, 8), (8, 4, 3, 2, 1), (8, 6, 5, 4, 3, 2, 1)


class QuadForm(SumBuilder):
    """Read the form of a sum: `c` is the summed axis in fours, `dense` if its channels are neighbours in memory.

    `steps` is the number of quads read at once, `chunk` the channels of these. A tile has `width` filters, at most `rows`
    places, and sums `acc`, of four bytes. Raises NoMatch for other forms.
    """

    c: Var
    width: int
    rows: int
    acc: Var

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        zero, self.dtype = self.bytes_()
        if not isinstance(zero, IntImm):
            raise NoMatch("the zero point is computed")
        #: the zero point of int8
        self.zero = int(zero) - (128 if self.dtype == "uint8" else 0)
        self.c, self.inner = self._channels()
        self.others = [var for var in self.summed if not var.same_as(self.tap) and not var.same_as(self.c)]
        at = next((place for place, index in enumerate(self.indices) if self.c.same_as(index)), None)
        extents = [int(extent) for extent in self.data.source.ty.shape]
        last = max(place for place, extent in enumerate(extents) if extent > 1)
        plain = self.border is None and self.tap is None and self.stride == 1
        self.dense = plain and at == last and self.axes[self.c] % CHUNK == 0
        self.chunk = CHUNK if self.dense else 4
        self.quads = ceil(self.axes[self.c] / 4)
        self.rows_last, self.bytes = self._stores()
        self.steps = CHUNK // 4 if self.dense else 1

    def _channels(self) -> tuple[Var, int]:
        """Find the summed axis to take by four, and the weight's dimension it moves along."""
        for index in self.weight.indices:
            if not isinstance(index, IntImm) and index not in self.axes:
                raise NoMatch("the weight is not indexed by axes")
        moved = [
            var for var in self.summed if not var.same_as(self.tap) and any(uses(index, var) for index in self.indices)
        ]
        fit = [var for var in moved if self.axes[var] > 2]
        if not fit:
            raise NoMatch("no summed axis in fours")
        # the least padding to fours, then the longest: rows of a window, if there are one or two channels
        c = min(fit, key=lambda var: (ceil(self.axes[var] / 4) / self.axes[var], -self.axes[var]))
        return c, self.weight_places([c])[0]

    def _stores(self) -> tuple[bool, bool]:
        """Return whether neighbouring places are neighbours in the result, and whether it holds bytes."""
        x, f = Var("x", "int64"), Var("f", "int64")
        own = {var: int64(0) for var in self.axes} | {self.x: x, self.f: f}
        _, value, indices = self.result(tirx.const(0, "int32"), own)
        linear = sym.detect_linear_equation(indices[-1], [x])
        along = linear and isinstance(linear[0], IntImm) and int(linear[0]) == 1 and not uses(indices[-1], f)
        return bool(along), str(value.ty.dtype) in ("int8", "uint8")

    def tile_shape(self, registers: int, dots: bool) -> tuple[int, int]:
        """Choose filters and places of a tile with the fewest instructions; sums take so many registers at most."""
        terms = self.quads * prod(self.axes[var] for var in self.summed if not var.same_as(self.c))
        windows = self.border is not None or self.tap is not None

        def cost(width: int, rows: int) -> float:
            around = (8 if rows >= PLACES else 16) if windows else 0  # branches, loops, words of fewer bytes
            read = 3 * rows / 4 if self.dense else 8 * ceil(rows / PLACES) + around
            alone = (rows % PLACES if self.bytes else rows) if self.rows_last else 0
            stored = (rows + 2 * alone) * width
            multiplied = rows * width / 4 if dots else rows * width * 3 / 4 + 2 * rows
            return terms * (multiplied + width / 8 + read + 3) + 2 * stored

        rows = _DENSE_ROWS if self.dense else _ROWS
        return self.cheapest_tile(_WIDTHS, rows, cost, lambda width, high: high * width // 4 <= registers)

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the int32 sum of a place of the tile and a filter of its block, in a vectorised loop."""
        raise NotImplementedError

    def stored(self, outer: dict[Var, Expr], start: Expr, block: Expr, rows: int) -> list[Stmt]:
        """Store the epilogue of a tile of `rows` places from `start` on."""

        def result(row: Expr, sum_: Expr, filter_: Expr) -> tuple[Var, Expr, list[Expr]]:
            own = {**outer, self.x: start + row, self.f: block * self.width + filter_}
            return self.result(sum_, own)

        def alone(row: int, first: int, lane: Expr) -> BufferStore:
            return BufferStore(*result(int64(row), self.sum_at(row, lane + first), lane + first))

        def together(row: int, first: int, free: int, lane: Expr) -> BufferStore:
            four = [result(int64(row + n), self.sum_at(row + n, lane + first), lane + first)[1] for n in range(PLACES)]
            word = couple(couple(four[0], four[1]), couple(four[2], four[3])).astype("uint32")
            return BufferStore(self.acc, word, [int64(row), lane + free])

        def taken(row: int, filter_: int, held: int, place: Expr) -> BufferStore:
            buffer, value, indices = result(place + row, tirx.const(0, "int32"), int64(filter_))
            word = tirx.BufferLoad(self.acc, [int64(row), int64(held)]).astype("int32")
            return BufferStore(buffer, byte(word, place.astype("int32"), str(value.ty.dtype)), indices)

        parts: list[Stmt] = []
        whole = rows // PLACES * PLACES if self.rows_last and self.bytes else 0
        for row in (*range(0, whole, PLACES), *range(whole, rows)):
            for first in range(0, self.width, LANES):
                lanes = min(LANES, self.width - first)
                if row >= whole:
                    parts.append(vector(lanes, partial(alone, row, first)))
                    continue
                free = first * (int(self.acc.ty.shape[-1]) // self.width)  # sums that have been read
                parts.append(vector(lanes, partial(together, row, first, free)))
                parts += [vector(PLACES, partial(taken, row, first + n, free + n)) for n in range(lanes)]
        return parts
