"""Schedule integer products of weights by pairs over planes: two channels side by side in a line, widened once.

    for … rows of the result, bands of places along them:
        lines[c, i, column] = x of channels 2 c and 2 c + 1 less its zero point, two int16, or the padding
        for blocks of filters, tiles of places:
            acc[places, filters] = 0
            for i, taps j, c:
                acc[p, 0:8] += pairs(weight[i, j, c, 0:8], lines[c, i, p · stride + j])
            result[tile] = epilogue(acc)

Sums of integers are exact in any order.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr, Var

from ....tir.index_grid import NoMatch
from ....tir.operators.quads import couple
from .runs.nhwc_runs import NhwcRuns
from .sum_builder import Axes


class NchwPmaddwd(NhwcRuns):
    """Build the kernel; `paired` is the longest summed axis in pairs, counted by these. Raises NoMatch for other forms."""

    paired: Var

    def _channels(self) -> None:
        if self.axes[self.x] == 1:
            raise NoMatch("a single place: no line to widen")

    def _in_run(self) -> list[Var]:
        even = [var for var in self.pairable() if self.axes[var] % 2 == 0 and not self.conditions_along(var)]
        if not even:
            raise NoMatch("no summed axis in pairs")
        self.paired = max(even, key=lambda var: self.axes[var])
        self.axes = {**self.axes, self.paired: self.axes[self.paired] // 2}
        return [self.paired]

    def _check_run(self) -> None:
        self.run *= self.grouped  # values of a column of lines are whole pairs

    def lined(self, values: Axes, column: Expr, at: Expr) -> Expr:
        pair = ({**values, self.paired: values[self.paired] * 2 + number} for number in (0, 1))
        return couple(*(self.element(each, column + at) for each in pair))

    def group(self, values: dict[Var, Expr], _start: Expr, _row: int, at: Expr, group: Expr) -> Expr:
        place = {**values, self.paired: group}
        return tirx.BufferLoad(self.lines, [*(place[var] for var in self.rows), at])
