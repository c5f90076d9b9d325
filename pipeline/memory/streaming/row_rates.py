"""Choose ticks that fit the rates of all tensors in a streaming region: `RowRates`."""

from __future__ import annotations

import math

#: rows of a tensor per row of the first result, as numerator and denominator without a common divisor
Rate = tuple[int, int]


class RowRates:
    """Ticks that fit all rates: each period is a whole number, and they have no common divisor."""

    def __init__(self) -> None:
        self._unit, self._common = 1, 0
        #: periods of the rates added, computed on demand
        self._periods: dict[Rate, int | None] = {}

    def add(self, rate: Rate) -> None:
        """Refine the ticks for one more rate."""
        if rate in self._periods:
            return
        over, under = rate
        unit = math.lcm(self._unit, over)
        self._common = math.gcd(self._common * (unit // self._unit), unit // over * under)
        self._unit = unit
        self._periods = dict.fromkeys((*self._periods, rate))

    def period(self, rate: Rate) -> int:
        """Return the ticks between two groups of rows of this rate."""
        found = self._periods[rate]
        if found is None:
            over, under = rate
            found = self._periods[rate] = self._unit // over * under // self._common
        return found


def reduce_rate(over: int, under: int) -> Rate:
    """Return a rate without a common divisor."""
    common = math.gcd(over, under)
    return over // common, under // common
