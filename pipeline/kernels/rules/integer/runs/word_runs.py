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
each sum takes off. The frame is that of `dot_runs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import PrimFunc

from .....support.divisors import divisors
from .....targets import Machine
from .....tir.index_grid import Unknown
from .....tir.loop_nests import buffer_of
from .....tir.operators.pairs import fours, halves
from .....tir.operators.quads import dots, neighbours
from ....weights.repack_pairs import RepackPairs
from ...rule import RuleResult
from ..product_schedule import product_schedule
from .dot_runs import GROUP, DotRuns
from .run_products import ALONE, RunProducts

#: sums of a tile at most: of 14 registers, two hold the spread word, two the other one, two addresses, and some counters
_SUMS = 6
#: bytes of the lines at most
_MOST_LINES = 3072
#: instructions of a word that is spread, of its products for one sum, and those of a step and a tile beside
_SPREAD, _PLACE, _FILTER, _STEP, _TILE = 3, 3, 5, 1.5, 16
#: part of its instructions that a tile more has to save: it takes code
_REST = 0.1


def word_runs(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.lanes == 1 and machine.dots:
        yield from product_schedule(WordRuns, kernel, repackable, machine)


class WordRuns(DotRuns):
    """Build the kernel; `widened` if lines hold int16, else data keeps its dtype. Raises Unknown for other forms."""

    offset = 0
    filled = 8
    widened = False

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        RunProducts.__init__(self, kernel, repackable, machine)
        self.lines = buffer_of("lines", self._extents(self.tiles * self.high), "int16" if self.widened else self.dtype)

    def _repacked(self, in_run: list[Var]) -> RepackPairs:
        return replace(super()._repacked(in_run), spread=self.widened)

    def _tile_shape(self, _machine: Machine) -> tuple[int, int]:
        """Choose places of a filter, or filters of a place, with the fewest instructions."""
        places, filters = self.axes[self.x], self.axes[self.f]
        steps = self.repack.shape(self.repack.extents)[1] - 1
        found: list[tuple[float, bool, int, int]] = []
        if places > 1:
            found += [(self._cost(steps, high, _PLACE, places), True, high, 1) for high in range(2, _SUMS + 1) if self._fits(high)]
        if self.in_place or self._bytes(1) <= (ALONE if places == 1 else _MOST_LINES):
            found += [(self._cost(steps, width, _FILTER, filters), False, 1, width) for width in divisors(filters, _SUMS)]
        if not found:
            raise Unknown("a tile's lines are too long")
        _, self.widened, high, width = min(found)
        self.in_place = self.in_place and not self.widened
        return high, width

    def _cost(self, steps: int, sums: int, each: int, whole: int) -> float:
        """Return the instructions of a sum in a tile of so many, where there are `whole`."""
        return (steps * (_SPREAD + each * sums + _STEP) + _TILE) / sums * (1 + _REST * (whole % sums > 0))

    def _fits(self, high: int) -> bool:
        """Tell whether lines of int16 for so many places are short enough."""
        return high <= self.axes[self.x] and 2 * prod(self._extents(high)) <= _MOST_LINES

    def _bytes(self, places: int) -> int:
        return (1 + self.widened) * super()._bytes(places)

    def _values_of(self, columns: int) -> int:
        values = super()._values_of(columns)
        return values + values % 2  # rows of lines are whole words

    def _tiles_of_a_band(self) -> int:
        apart = self.span(1) <= self.stride  # windows share no column
        return 1 if self.widened and apart else super()._tiles_of_a_band()

    def _unsigned(self, values: dict[Var, Expr], column: Expr, at: Expr) -> Expr:
        return super()._unsigned(values, column, at).astype(str(self.lines.ty.dtype))

    def group(self, values: dict[Var, Expr], start: Expr, row: int, at: Expr, group: Expr) -> Expr:
        if not self.widened:
            return super().group(values, start, row, at, group)
        first = [*(values[var] for var in self.rows), at + group * GROUP]
        return tirx.BufferLoad(self.lines, first)

    def products(self, sum_: Expr, weights: Expr, values: Expr) -> Expr:
        if self.widened:
            *rows, first = values.indices
            low, high = (neighbours(*(tirx.BufferLoad(self.lines, [*rows, first + n]) for n in pair)) for pair in ((0, 1), (2, 3)))
            return halves(sum_, weights, low, high, whole=self.even)
        return (dots if self.dtype == "int8" else fours)(sum_, weights, values)
