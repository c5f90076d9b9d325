"""Schedule depthwise sums of integer products on a core with vectors for integers alone, Arm's MVE: lines with padding.

    for … rows of the result, bands of places along them, blocks of sixteen channels:
        lines[i, column, 0:16] = x as int8, or its zero point as padding
        for four channels of these, places of the band:
            result[place, 0:4] = epilogue(Σ weight[i, j, 0:4] · lines[i, place · stride + j, 0:4] − zero point · Σ weight[i, j, 0:4])

The last band and the last block overlap the ones before, and padding is in
lines, so that code is for one size only.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, PrimFunc, Stmt

from .....targets import Machine
from .....tir.index_grid import NoMatch
from .....tir.loop_nests import buffer_of, sequence
from ...line_buffer import loop_of
from ..channel_windows import ChannelWindows
from ..integer_sum import IntegerSum
from ..loops import overlapped, vector
from ..micro_kernel import MicroKernel
from .lines import Lines

#: channels of a vector of sums, and of the lines at most
_FOUR, _CHANNELS = 4, 16


class ChannelLines(Lines, ChannelWindows):
    """Build the kernel. Raises NoMatch for other forms."""

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.read_bytes()
        if not isinstance(self.zero, int):
            raise NoMatch("the zero point is computed")
        self.c = self.f
        self.lines = buffer_of("lines", self._extents(self.size), "int8")

    def _lanes(self, machine: Machine) -> int:
        self.edges = self.axes[self.x]
        self.channels = min(self.axes[self.f], _CHANNELS)
        return super()._lanes(replace(machine, lanes=_FOUR))

    def _extents(self, places: int) -> list[int]:
        return [*(self.axes[var] for var in self.rows[0]), self.values_of(self.span(places))]

    def _bytes(self, places: int) -> int:
        return prod(self._extents(places))

    def kernel(self) -> PrimFunc:
        """Build bands and blocks by code of one size."""
        outer = self.outer()

        def stored(start: Expr, first: Expr, moved: Expr) -> Stmt:
            """Store the results of four channels, `moved` from the first one of a block."""
            place = Var("place", "int64")

            def summed(lane: Expr) -> BufferStore:
                nothing, total = tirx.const(0, "int32"), tirx.const(0, "int32")
                for row in self.rows:
                    for tap in range(self.taps):
                        at = (place * self.stride + tap * self.step) * self.channels + moved + lane
                        value = tirx.BufferLoad(self.lines, [*row.values(), at]).astype("int32")
                        weight = self._weight(row, tap, outer, first + moved + lane).astype("int32")
                        nothing, total = nothing + weight, total + weight * value
                own = {**outer, self.x: start + place, self.f: first + moved + lane}
                return BufferStore(*self.result(total - nothing * self.zero, own))

            return loop_of(place, self.size, vector(self.lanes, summed))

        def block(start: Expr, first: Expr) -> Stmt:
            filled = self.fill(list(self.rows[0]), {**outer, self.f: first}, start, self.size)
            four = overlapped("four", self.channels, _FOUR, lambda moved: stored(start, first, moved))
            return sequence([filled, four])

        def band(start: Expr) -> Stmt:
            return overlapped("block", self.axes[self.f], self.channels, lambda at: block(start, at))

        stmt = overlapped("band", self.axes[self.x], self.size, band)
        return self.in_rows(stmt, outer, [self.lines])
