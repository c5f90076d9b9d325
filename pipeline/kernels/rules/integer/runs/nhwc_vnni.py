"""Schedule integer products of weights by fours along runs: bytes as they are in memory, by x86's vpdpbusd.

    for … rows of the result, bands of places along them:
        lines[i, column · C + c] = x as uint8, or its zero point as padding     (none if x can be read in place)
        for blocks of filters, tiles of places:
            acc[places, filters] = − zero point · Σ weight[filters]
            for i, groups r of four along a run (taps along the line, and the channels of each):
                acc[p, 0:16] = fours(acc[p, 0:16], weight[i, r, 0:16], lines[i, p · stride · C + 4 r : + 4])
            result[tile] = epilogue(acc)

Data of int8 is offset by 128, and so is its zero point. A run that is not whole fours ends with weights of 0. Sums of
integers are exact in any order.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx
from tvm.ir import Expr, Var

from .....tir.index_grid import NoMatch
from .....tir.loop_nests import int64
from .....tir.operators.quads import vector_of
from ....weights.repack_sums import RepackSums
from ..loops import load_neighbours
from .byte_lines import ByteLines
from .nhwc_pmaddwd import NhwcPmaddwd

#: bytes of the start of a sum
START = 4


class NhwcVnni(ByteLines, NhwcPmaddwd):
    """Build the kernel; `in_place` if data is read from memory. Raises NoMatch for other forms."""

    #: least values of a run
    least = 4

    def _check_run(self) -> None:
        """Read the zero point, and whether data is read in place. Raises NoMatch for a run of few values."""
        if self.run < self.least:
            raise NoMatch("no run of fours")
        self.read_bytes()
        contiguous = self.run == self.channels or not self.chosen
        self.in_place = self.padding is None and self.run % self.grouped == 0 and contiguous and not self.flipped

    def _repacked(self, in_run: list[Var]) -> RepackSums:
        return replace(super()._repacked(in_run), zero=self.zero if isinstance(self.zero, int) else 1)

    def start(self, block: Expr, lane: Expr) -> Expr:
        ends = self.repack.shape(self.repack.extents)[1] - 1
        held = load_neighbours(self.packed, [block, int64(ends)], lane * START, START)
        return held if isinstance(self.zero, int) else held * self.zero

    def group(self, values: dict[Var, Expr], start: Expr, _row: int, at: Expr, group: Expr) -> Expr:
        source, row = self.lines, [*(values[var] for var in self.rows), at]
        if self.in_place:  # of the first place's indices, only the last one grows
            first = self.value_at(values, start * self.stride + tirx.floordiv(at, self.channels), int64(0))
            source, row = first.source, list(first.indices)
        return self.neighbours(source, row[:-1], row[-1] + group * self.grouped)

    def neighbours(self, buffer: Var, row: list[Expr], first: Expr) -> Expr:
        """Load a group of values."""
        if not self.row.vectors:
            return load_neighbours(buffer, row, first, self.grouped)
        return vector_of(*(tirx.BufferLoad(buffer, [*row, first + n]) for n in range(self.grouped)))
