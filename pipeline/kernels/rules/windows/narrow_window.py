"""Schedule windows over planes whose rows are one vector: taps are lanes of a row of the data, shuffled.

    for … planes, groups of rows:
        acc[r, 0:8] = start                                    past the end of a plane of 7 columns
        for … rows of the data that a group needs, unrolled:
            for … taps and rows r that meet it:
                acc[r, 0:8] += row[x · stride + j] * weight[i, j], 0 in place of padding
        result[rows] = epilogue(acc)                           of the plane alone

Each row of the data is loaded once. Vectors of rules/windows/direct_window.py hold no lanes past a row: 7 columns take two of 4.
"""

from __future__ import annotations

from tvm.ir import Expr
from tvm.tirx import PrimFunc

from ....targets import Machine
from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ....tir.loop_nests import int64
from ....tir.operators.row_element import nearest, row_element
from ..fused_sum import sum_rule
from ..sliding_plane import DataRow
from .direct_window import Place, RowSums

#: lanes of the shortest vectors of which part is unused; vectors of a row of the data, which one shuffle takes
_FEW, _VECTORS = 8, 2
#: fewest taps for which vectors longer than the shortest are shuffled, and most products unrolled
_TAPS, _PRODUCTS = 10, 512
#: sums to add to in turn: two additions a cycle, each of which takes four
_CHAINS = 12


@sum_rule
def narrow_windows(kernel: PrimFunc, machine: Machine) -> PrimFunc:
    """Schedule a depthwise window whose rows are one vector: a Rule."""
    return _Narrow(inlined(kernel), machine).kernel()


class _Narrow(RowSums):
    """Sum whole rows in a vector each."""

    def plan(self, machine: Machine) -> None:
        if not machine.transposes or machine.compact or not self.skips_padding:
            raise NoMatch("vectors are not shuffled, or the padding cannot be skipped")
        if self.summed or self.filters or self.once or not self.fits_accumulators:
            raise NoMatch("planes are summed or shared, a sum continues, or an epilogue reads past the end")
        taps = self.rows.taps * self.columns.taps
        self.lanes = _FEW
        while self.lanes < self.width:
            self.lanes *= 2
        if self.lanes > machine.lanes or 2 * self.width <= self.lanes or (self.lanes > _FEW and taps < _TAPS):
            raise NoMatch("a row is not a vector, or the window is small")
        if not self.lanes // 2 <= self.end - self.first <= _VECTORS * self.lanes:
            raise NoMatch("a row of the data is more than two vectors")
        self.most = machine.registers_of(self.lanes) // 2
        most = min(self.most, _PRODUCTS // taps)
        if most < 1:
            raise NoMatch("the window is large")
        self.starts, self.in_place = [0], True
        self.count = -(-self.height // -(-self.height // most))

    def apart(self) -> int:
        """Return how far apart rows of the data are whose sums wait for no other, and that share weights."""
        count, step = super().apart(), self.rows.stride
        if any(row.inside is not None for _, row in self.met):
            return count
        together = max(min(-(-_CHAINS * step // self.rows.taps), self.most - self.count), 1)
        return min(-(-count // (together * step)) * step, count)

    def read(self, place: Place, j: int, lane: Expr, data: DataRow) -> Expr:
        """Read the data of a tap by lanes of its row."""
        at, extent = lane * self.columns.stride + (j * self.columns.step - self.first), self.end - self.first
        first = data.element(int64(self.first))
        return row_element(first, data.element(nearest(at, extent) + self.first), at, extent)
