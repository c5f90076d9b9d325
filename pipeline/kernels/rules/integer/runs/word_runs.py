"""Schedule integer products of weights by fours along runs on a core without vectors, by Arm's sxtb16 and smlad.

    for … rows of the result, bands of places along them:
        lines[i, column · C + c] = x as int16, or its zero point as padding
        for filters, tiles of places:
            acc[places] = − zero point · Σ weight[filter]
            for i, groups r of four along a run (taps along the line, and the channels of each):
                acc[p] = halves(acc[p], weight[i, r], lines[i, p · stride · C + 4 r : + 4])
            result[tile] = epilogue(acc)

Four weights, a word, are spread into two words of two int16 once for all places. A single place is read in place, or as bytes
from lines: its words are spread once for the filters of a block. Data keeps its sign and its zero point, which the start of
each sum takes off. The last band and the last tile overlap the ones before, so that code is for one size only.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import IntImm, PrimFunc, Stmt

from .....support.divisors import divisors
from .....tir.index_grid import NoMatch
from .....tir.loop_nests import sequence
from .....tir.operators.pairs import fours, halves
from .....tir.operators.quads import dots
from ...line_buffer import loop_of
from ..loops import overlapped
from .nhwc_runs import ALONE, NhwcRuns

#: sums of a tile at most: of 14 registers, two hold the spread word, two the other one, two addresses, and some counters
_SUMS = 6
#: bytes of the lines: preferred, at most
_LINES, LONGEST = 1024, 3072
#: instructions of a word that is spread, of its products for one sum, and those of a step and a tile beside
_SPREAD, _PLACE, _FILTER, _STEP, _TILE = 3, 3, 5, 1.5, 16


class WordRuns(NhwcRuns):
    """Build the kernel; `widened` if lines hold int16, else data keeps its dtype. Raises NoMatch for other forms."""

    least = 3
    widened = False
    #: whether windows that share no column are copied one by one, into registers
    alone = True

    @property
    def line_dtype(self) -> str:
        return "int16" if self.widened else super().line_dtype

    @property
    def groups(self) -> int:
        """Count the groups of a filter."""
        return self.steps * prod(self.axes[var] for var in self.others)

    def _tile_shape(self) -> tuple[int, int]:
        """Choose places of a filter, or filters of a place, with the fewest instructions."""
        places, steps = self.axes[self.x], self.groups
        found: list[tuple[float, bool, int, int]] = []
        tallest = min(places, _SUMS)  # their words are widened to int16
        for high in range(2, tallest + 1):
            if 2 * prod(self._extents(high)) <= LONGEST:
                again = -(-places // high) * high / places
                found.append((again * _cost(steps, high, _PLACE), True, high, 1))
        if self.in_place or self._bytes(1) <= (ALONE if places == 1 else LONGEST):
            found += [(_cost(steps, width, _FILTER), False, 1, width) for width in divisors(self.axes[self.f], _SUMS)]
        if not found:
            raise NoMatch("a tile's lines are too long")
        _, self.widened, high, width = min(found)
        self.in_place = self.in_place and not self.widened
        self.order = "r k/4 f k%2 k%4/2" if self.widened else ""
        return high, width

    def values_of(self, columns: int) -> int:
        values = super().values_of(columns)
        return values + values % 2  # rows of lines are whole words

    def _tiles_of_a_band(self) -> int:
        tiles = -(-self.axes[self.x] // self.high)
        if self.in_place:
            return tiles
        if self.alone and self.span(1) <= self.stride:  # windows share no column
            return 1
        most = max((n for n in range(1, tiles) if self._bytes(n * self.high) <= _LINES), default=1)
        return tiles if self._bytes(self.axes[self.x]) <= _LINES else -(-tiles // -(-tiles // most))

    def kernel(self) -> PrimFunc:
        """Build bands by code of one size."""
        outer = self.outer()

        def band(start: Expr, count: int) -> Stmt:
            filled = [] if self.in_place else [self.fill(self.rows, outer, start, count)]
            tiles = self._tiles(count, lambda at, block: self._tile(outer, start, at, block, self.high))
            return sequence([*filled, tiles])

        size = min(self.tiles * self.high, self.axes[self.x])
        stmt = overlapped("band", self.axes[self.x], size, lambda at: band(at, size))
        return self.in_rows(stmt, outer, self.buffers())

    def _tiles(self, count: int, build: Callable[[Expr, Var], Stmt]) -> Stmt:
        """Loop over blocks of filters, and tiles of places in each."""
        block = Var("block", "int64")
        tiles = overlapped("tile", count, self.high, lambda at: build(at, block))
        return loop_of(block, self.axes[self.f] // self.width, tiles)

    def group(self, values: dict[Var, Expr], start: Expr, row: int, at: Expr, group: Expr) -> Expr:
        if not self.widened:
            return super().group(values, start, row, at, group)
        # from the first place and the first group of a step on: all of these share its address
        number = int(group.b) if isinstance(group, tirx.Add) and isinstance(group.b, IntImm) else 0
        moved = row * self.stride * self.channels + number * self.grouped
        first = tirx.BufferLoad(self.lines, [*(values[var] for var in self.rows), at + group * self.grouped - moved])
        nothing = tirx.const(0, "int32")
        gap = self.step * self.channels if any(var.same_as(self.tap) for var in self.others) else 0
        even = self.stride * self.channels % 2 == 0 and gap % 2 == 0  # all groups start at words
        return halves(nothing, nothing, first, moved, whole=even)

    def added(self, sum_: Expr, weights: Expr, values: Expr) -> Expr:
        if self.widened:
            _, _, first, moved, whole = values.args
            return halves(sum_, weights, first, int(moved), whole=bool(whole))
        return (self.row.multiply or (dots if self.dtype == "int8" else fours))(sum_, weights, values)


def _cost(steps: int, sums: int, each: int) -> float:
    """Return the instructions of a sum in a tile of so many."""
    return (steps * (_SPREAD + each * sums + _STEP) + _TILE) / sums
