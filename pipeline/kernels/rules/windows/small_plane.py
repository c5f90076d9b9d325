"""Schedule windows over planes narrower than a vector: every product of a plane unrolled, those with padding left out.

    for … planes:
        acc[y, x] = start, for all elements of the result
        acc[y, x] += data[2 y + i, 2 x + j] * weight[i, j], for all taps inside the plane
        result[y, x] = epilogue(acc[y, x])

Lines of rules/sliding_window.py are of four columns at least, and copied first. All of a plane is loaded before any of
it is stored.
"""

from __future__ import annotations

from tvm.tirx import PrimFunc

from ....targets import Machine
from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ..fused_sum import sum_rule
from .direct_window import RowSums

#: columns from which vectors take less; most products of a plane
_WIDTH, _PRODUCTS = 4, 128


@sum_rule
def small_planes(kernel: PrimFunc, machine: Machine) -> PrimFunc:
    """Schedule `kernel` by its small planes: a Rule."""
    return _Small(inlined(kernel), machine).kernel()


class _Small(RowSums):
    """Sum all elements of a plane at once, in a lane each."""

    def plan(self, machine: Machine) -> None:
        if machine.compact or self.summed or self.filters or self.once:
            raise NoMatch("code is short, planes are summed or shared, or a sum continues")
        if self.width >= _WIDTH or self.height * self.width * self.rows.taps * self.columns.taps > _PRODUCTS:
            raise NoMatch("the plane is large")
        if not self.skips_padding and not self.pools:
            raise NoMatch("the padding cannot be skipped")
        self.lanes, self.starts, self.at_once, self.count = 1, range(self.width), self.width, self.height
