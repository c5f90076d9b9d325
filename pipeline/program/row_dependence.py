"""How a kernel can be split, as plain data: what a row of its result needs, and what it can take row by row.

Rows are of any one axis: lines of an image, or its channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

#: how many rows of an operand a row of a result may stand for, or the other way round
_PACES = tuple(Fraction(n) for n in range(1, 9)) + tuple(Fraction(1, n) for n in range(2, 9))

#: see `Follows.pace`
Pace = tuple[Fraction, int, int]


@dataclass(frozen=True)
class Follows:
    """An operand whose rows, along its `axis` of `extent`, follow those of the result: row v of the result needs rows
    `low[v]` up to `high[v]`. Those below 0 or from `extent` on are padding, and do not exist."""

    axis: int
    extent: int
    low: tuple[int, ...]
    high: tuple[int, ...]

    def pace(self, group: int) -> Pace:
        """Slope, low and high: group v of the result's rows, `group` of them, needs groups floor(slope · v) + low up to
        floor(slope · v) + high of the operand's. The narrowest that hold for all; of equal ones the first of _PACES."""
        if group not in self._paces:
            groups = range(len(self.low) // group)
            lows = [min(self.low[group * v : group * (v + 1)]) // group for v in groups]
            highs = [-(-max(self.high[group * v : group * (v + 1)]) // group) for v in groups]
            found = [_pace(slope, lows, highs) for slope in _PACES]
            self._paces[group] = min(found, key=lambda pace: pace[2] - pace[1])
        return self._paces[group]

    @cached_property
    def _paces(self) -> dict[int, Pace]:
        return {}


def _pace(slope: Fraction, lows: list[int], highs: list[int]) -> Pace:
    at = [slope.numerator * v // slope.denominator for v in range(len(lows))]
    return slope, min(low - v for low, v in zip(lows, at)), max(high - v for high, v in zip(highs, at))


@dataclass(frozen=True)
class Rows:
    """A kernel whose result can be computed row by row, along its `axis` of `extent`.

    `operands` are, by position, those whose rows follow; of the others each row needs all, or they are weights.
    """

    axis: int
    extent: int
    operands: tuple[tuple[int, Follows], ...]

    def follows(self, operand: int) -> Follows | None:
        return next((follows for number, follows in self.operands if number == operand), None)


@dataclass(frozen=True)
class Splits:
    """All ways to split a kernel. `sums` are the operands, by position, and axes of them, whose rows it can take one
    after the other, accumulating; `work` is the number of times its innermost loops run."""

    rows: tuple[Rows, ...]
    sums: tuple[tuple[int, int], ...]
    work: int
