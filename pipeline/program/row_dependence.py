"""Describe how a kernel can be split: the operand rows that each row of its result needs.

Rows are of any one axis: lines of an image, or its channels.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

#: slopes tried: rows of an operand per row of the result, or the inverse
_PACES = tuple(Fraction(n) for n in range(1, 9)) + tuple(Fraction(1, n) for n in range(2, 9))

#: see `Follows.pace`
Pace = tuple[Fraction, int, int]


@dataclass(frozen=True)
class Follows:
    """Operand with rows, along its `axis` of `extent`, that follow the result's.

    Row v of the result needs rows `low[v]` up to `high[v]`. Rows below 0 or from `extent` on are padding, and do not
    exist.
    """

    axis: int
    extent: int
    low: tuple[int, ...]
    high: tuple[int, ...]

    def pace(self, group: int) -> Pace:
        """Return slope, low and high of the operand groups a group of result rows needs.

        Group v of the result, of `group` rows, needs groups floor(slope · v) + low up to floor(slope · v) + high of the
        operand. Takes the narrowest that hold for all v; of equal ones the first of _PACES. Where `group` does not divide
        the rows, the last group is the last `group` rows.
        """
        if group not in self._paces:
            self._paces[group] = _narrowest(self.extent, self.low, self.high, group)
        return self._paces[group]

    @cached_property
    def _paces(self) -> dict[int, Pace]:
        return {}


@lru_cache(1 << 12)
def _narrowest(extent: int, low: tuple[int, ...], high: tuple[int, ...], group: int) -> Pace:
    """Return the pace of an operand, see `Follows.pace`: most kernels of a model follow in few ways."""
    starts = group_starts(len(low), group)
    lows = [_holding(min(low[start : start + group]), extent, group) for start in starts]
    highs = [-(-max(high[start : start + group]) // group) for start in starts]
    return min((_pace(slope, lows, highs) for slope in _PACES), key=lambda pace: pace[2] - pace[1])


def _holding(row: int, extent: int, group: int) -> int:
    """Return the last group that holds `row` of the operand."""
    return (extent - 1) // group if extent - group <= row < extent else row // group


def group_starts(extent: int, group: int) -> list[int]:
    """List the first row of each group; the last one overlaps where `group` does not divide `extent`."""
    return [min(start, extent - group) for start in range(0, extent, group)]


def _pace(slope: Fraction, lows: list[int], highs: list[int]) -> Pace:
    """Return the narrowest low and high for a given slope."""
    at = [slope.numerator * v // slope.denominator for v in range(len(lows))]
    return slope, min(low - v for low, v in zip(lows, at)), max(high - v for high, v in zip(highs, at))


@dataclass(frozen=True)
class Rows:
    """Row-wise split of a kernel's result along its `axis` of `extent`.

    `operands` are, by position, the operands whose rows follow. Each row needs all of the others, or they are weights.
    `taps`: a row can be accumulated in so many parts, in this order, each from these rows of the only such operand.
    """

    axis: int
    extent: int
    operands: tuple[tuple[int, Follows], ...]
    taps: tuple[Follows, ...] = ()

    def follows(self, operand: int) -> Follows | None:
        """Return the row dependence of an operand; None if each row needs all of it."""
        return self._by_operand.get(operand)

    @cached_property
    def _by_operand(self) -> dict[int, Follows]:
        return dict(self.operands)


@dataclass(frozen=True)
class Splits:
    """All splits of a kernel.

    `sums` are pairs of an operand, by position, and an axis: its rows can be taken one after the other, accumulating.
    `work` is the number of iterations of its innermost loops.
    """

    rows: tuple[Rows, ...]
    sums: tuple[tuple[int, int], ...]
    work: int

    @cached_property
    def key(self) -> str:
        """Return 32 digits: equal splits share a key."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:32]
