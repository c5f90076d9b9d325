"""Turn arithmetic around: the operands that give a result within an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...frontend.canonical.graph_context import NodeView
from .constraint import Constraint, Form, Strength, telling
from .operand_rows import LEAST

Row = Callable[[NodeView, Constraint], Mapping[int, Constraint]]

#: largest product of an integer and a constant
_PRODUCT = 1 << 30


def limits_of(node: NodeView, number: int) -> tuple[float, float] | None:
    """Return the least and largest value of a constant operand."""
    value = node.constant(number)
    if value is None or not value.size or value.dtype.kind not in "iuf" or not np.isfinite(value).all():
        return None
    return float(value.min()), float(value.max())


def arithmetic(inverse: Callable[[NodeView, Constraint, int], Constraint | None]) -> Row:
    """Return the row of an operator of two operands from the inverse by one of them."""

    def row(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
        found = {number: inverse(node, wanted, number) for number in (0, 1)}
        return {number: constraint for number, constraint in found.items() if constraint is not None}

    return row


def _additive(node: NodeView, wanted: Constraint, number: int) -> Form | None:
    """Return the form of a mask if an operand is added to larger logits."""
    dims, result = node.sizes(number), node.sizes(node.result)
    if (
        wanted.form is None
        or wanted.form.kind != "logits"
        or dims is None
        or result is None
        or None in (*dims, *result)
    ):
        return None
    small = math.prod(size or 1 for size in dims) < math.prod(size or 1 for size in result)
    return Form("additive") if small and dims[-1:] == result[-1:] else None


def add(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    """Constrain an operand of a sum: less the other one, or half of the result."""
    other = limits_of(node, 1 - number)
    if other is None:  # each operand takes half of it
        low, high = (side / 2 if math.isfinite(side) else side for side in (wanted.low, wanted.high))
        return Constraint(low, high, wanted.strength, form=_additive(node, wanted, number))
    return _shifted(wanted, *other)


def _shifted(wanted: Constraint, low: float, high: float) -> Constraint:
    """Constrain x so that x + c is as wanted for every c from low to high."""
    avoid = frozenset(value - low for value in wanted.avoid) if low == high else frozenset()
    return _sorted(wanted.low - low, wanted.high - high, wanted, avoid)


def _sorted(low: float, high: float, wanted: Constraint, avoid: frozenset[float]) -> Constraint:
    """Return the interval; the value between its sides where no value suits every constant."""
    if low > high:
        low = high = (low + high) / 2
    return wanted.within(low, high, avoid=avoid)


def subtract(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    """Constrain an operand of a difference."""
    other = limits_of(node, 1 - number)
    if other is None:
        return _apart(wanted, number)
    if number == 0:
        return _shifted(wanted, -other[1], -other[0])
    if other == (1.0, 1.0) and wanted.strength < Strength.UNDEFINED:
        return telling(0, 1)  # 1 − x: the complement of a mask
    avoid = frozenset(other[0] - value for value in wanted.avoid) if other[0] == other[1] else frozenset()
    return _sorted(other[1] - wanted.high, other[0] - wanted.low, wanted, avoid)


def _apart(wanted: Constraint, number: int) -> Constraint:
    """Constrain both operands of a difference, so that it is as wanted."""
    if math.isfinite(wanted.low) and math.isfinite(wanted.high):
        middle = (wanted.low + wanted.high) / 2
        return wanted.within(middle, wanted.high) if number == 0 else wanted.within(0, middle - wanted.low)
    if number == 0:
        return wanted.within(wanted.low + 1, wanted.high - 1)
    return wanted.within(-1 if math.isfinite(wanted.high) else -math.inf, 1 if math.isfinite(wanted.low) else math.inf)


def multiply(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    """Constrain a factor; a square is never negative."""
    zero = wanted.avoid & {0.0}
    if node.name(0) == node.name(1):  # a square
        return wanted.within(-math.inf, math.inf, avoid=zero)
    other = limits_of(node, 1 - number)
    if other is None:
        return _factor(wanted, zero, number)
    scaled = _scaled(wanted, *other)
    largest = max(1.0, *map(abs, other))
    return replace(scaled or wanted.within(-math.inf, math.inf), magnitude=_PRODUCT / largest)


def _factor(wanted: Constraint, avoid: frozenset[float], number: int) -> Constraint:
    """Constrain each of two factors, so that their product is as wanted: of a negative one, the second is negative."""
    low, high = wanted.low, wanted.high
    if high <= 0:
        low, high = _root_range(-high, -low)
        return wanted.within(*((low, high) if number == 0 else (-high, -low)), avoid=avoid)
    if low < 0 and (low == -math.inf or math.isfinite(high)):
        most = math.sqrt(min(-low, high))
        return wanted.within(-most, most, avoid=avoid)
    return wanted.within(*_root_range(max(low, 0.0), high), avoid=avoid)


def _root_range(low: float, high: float) -> tuple[float, float]:
    """Return a range of positive numbers, each product of two of which is from `low` to `high`; neither is negative."""
    least = 0.0 if low == 0 else max(1.0, math.sqrt(low)) if math.isinf(high) else math.sqrt(low)
    return least, math.sqrt(high)


def _scaled(wanted: Constraint, low: float, high: float) -> Constraint | None:
    """Constrain x so that x · c is as wanted for every c from low to high; None if c changes its sign or is 0."""
    if low <= 0 <= high:
        return None
    sides = [(side / c) for c in (low, high) for side in (wanted.low, wanted.high)]
    pairs = [sorted(sides[:2]), sorted(sides[2:])]
    avoid = frozenset(value / low for value in wanted.avoid) if low == high else wanted.avoid & {0.0}
    return _sorted(max(pair[0] for pair in pairs), min(pair[1] for pair in pairs), wanted, avoid)


def divide(node: NodeView, wanted: Constraint, number: int) -> Constraint | None:
    """Constrain the dividend, or the divisor of a result that must not be negative."""
    if number == 1:
        positive = wanted.strength == Strength.FAILS or 0 <= wanted.low < math.inf
        return wanted.within(1 if wanted.strength == Strength.FAILS else LEAST, math.inf) if positive else None
    other = limits_of(node, 1)
    if other is None:
        return wanted.within(max(wanted.low, 0) if wanted.low > -math.inf else wanted.low, wanted.high)
    if other[0] <= 0 <= other[1]:
        return None
    return _scaled(wanted, *sorted((1 / other[0], 1 / other[1])))


def negate(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Turn the interval around."""
    return {0: wanted.within(-wanted.high, -wanted.low, avoid=frozenset(-value for value in wanted.avoid))}


def absolute(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Allow both signs of a magnitude."""
    low = wanted.low if wanted.low > 0 else -wanted.high
    return {0: wanted.within(low, max(low, wanted.high), avoid=wanted.avoid)}


def root(node: NodeView, wanted: Constraint) -> Mapping[int, Constraint]:
    """Square the interval."""
    return {0: wanted.within(max(0.0, wanted.low) ** 2, max(0.0, wanted.high) ** 2, avoid=wanted.avoid & {0.0})}
