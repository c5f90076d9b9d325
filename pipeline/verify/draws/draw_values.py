"""Draw values of any dtype under a constraint: numbers of three kinds, in turn."""

from __future__ import annotations

import math

import numpy as np

from .constraint import Constraint, Strength
from .draw_forms import draw_form

#: first number of the cases with gentle floats: for models that other draws lead to NaN
GENTLE = 1 << 16
#: share of integers set to each end of their interval, and the size of intervals whose ends are drawn anyway
_ENDS, _FEW = 1 / 16, 8
#: largest magnitude of integers of unknown use, by case in turn; None for the constraint's own
_KINDS = ((0, 1), (-9, 9), (-math.inf, math.inf))
#: how far open intervals reach, by case in turn
_REACH = (1, 9, 1000)
#: widest interval drawn from whatever `magnitude` says
_VAST = 1 << 21
#: distance kept from values to avoid, relative to them
_DISTANCE = 0.01


def draw_integers(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, case: int, constraint: Constraint | None
) -> np.ndarray:
    """Draw integers: uniform in the interval, often from its ends.

    Without one, bytes and smaller take their whole range, others 0 and 1, up to ±9, and all that is safe, in turn.
    """
    import ml_dtypes

    limits = ml_dtypes.iinfo(dtype)
    wanted = constraint or Constraint(strength=Strength.ANY)
    low, high = _interval(wanted, int(limits.min), int(limits.max), case)
    if wanted.form is not None:
        formed = draw_form(generator, shape, wanted.form, low, high, case)
        if formed is not None:
            return formed.astype(dtype)
    if limits.bits <= 8 and constraint is None:
        return generator.integers(low, high + 1, shape).astype(dtype)
    wide = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    values = np.asarray(generator.integers(low, high, shape, dtype=wide, endpoint=True))
    for end in (low, high) if high - low >= _FEW else ():
        values.reshape(-1)[generator.integers(0, values.size, round(values.size * _ENDS))] = end
    for value in sorted(wanted.avoid):
        values = np.where(values == value, value + 1 if value < high or low == high else value - 1, values)
    return values.astype(dtype)


def _interval(wanted: Constraint, least: int, most: int, case: int) -> tuple[int, int]:
    """Return the interval of integers to draw from, both ends included."""
    low, high = wanted.low, wanted.high
    if math.isinf(low) and math.isinf(high):
        if most > 255:
            kind = _KINDS[case % len(_KINDS)]
            low, high = max(kind[0], -wanted.magnitude), min(kind[1], wanted.magnitude)
    elif math.isinf(low) != math.isinf(high) and most > 255:
        reach = _REACH[case % len(_REACH)]
        low, high = (high - reach, high) if math.isinf(low) else (low, low + reach)
    elif wanted.strength < Strength.FAILS and high - low > _VAST:
        free = Constraint(strength=Strength.ANY, magnitude=wanted.magnitude)
        inner = _interval(free, least, most, case)
        low, high = max(low, inner[0]), min(high, inner[1])
    first = least if low <= least else min(math.ceil(low), most)
    last = most if high >= most else max(math.floor(high), least)
    return (first, last) if first <= last else (last, last)


def draw_floats(
    generator: np.random.Generator, shape: tuple[int, ...], case: int, constraint: Constraint | None
) -> np.ndarray:
    """Draw float64: standard normal, uniform in [0, 1), or patches of 0 and 1, moved into the interval."""
    if case >= GENTLE:
        return _gentle(generator, shape, case, constraint)
    kinds = (generator.standard_normal, generator.random, lambda shape: _patches(generator, shape))
    values = kinds[case % len(kinds)](shape)
    return values if constraint is None else _fit(generator, values, case, constraint)


def _gentle(
    generator: np.random.Generator, shape: tuple[int, ...], case: int, constraint: Constraint | None
) -> np.ndarray:
    """Draw positive, small, or equal floats."""
    kinds = (
        lambda: 0.5 + generator.random(shape),
        lambda: 0.01 * generator.standard_normal(shape),
        lambda: np.full(shape, 1.0),
    )
    values = np.asarray(kinds[(case - GENTLE) % len(kinds)]())
    return values if constraint is None else _fit(generator, values, case, constraint)


def _fit(generator: np.random.Generator, values: np.ndarray, case: int, wanted: Constraint) -> np.ndarray:
    """Move values into the interval, away from the values to avoid; they stay as they are where they fit."""
    if wanted.form is not None:
        formed = draw_form(generator, values.shape, wanted.form, wanted.low, wanted.high, case)
        if formed is not None:
            return formed
    values = np.asarray(_move(values, wanted.low, wanted.high))
    for value in sorted(wanted.avoid):
        distance = _DISTANCE * max(1.0, abs(value))
        other = value + 1 if value + 1 <= wanted.high else value - 1
        values = np.where(np.abs(values - value) < distance, other, values)
    return values


def _move(values: np.ndarray, low: float, high: float) -> np.ndarray:
    if ((values >= low) & (values <= high)).all():
        return values
    if math.isfinite(low) and math.isfinite(high):
        share = values if ((values >= 0) & (values <= 1)).all() else 1 / (1 + np.exp(-values))
        return low + (high - low) * share
    if math.isfinite(low):
        return np.maximum(np.abs(values), low) if 0 <= low < 1 else low + np.abs(values)
    return high - np.abs(values)


def _patches(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Make bars and patches of 0 and 1 with random widths: edges, as vision and audio networks detect."""
    total = np.zeros(shape)
    for _ in range(4):
        layer = np.full(shape, generator.standard_normal())
        for axis, extent in enumerate(shape):
            width = int(generator.integers(2, max(3, extent // 4 + 1)))
            signs = generator.choice([-1.0, 1.0], size=-(-extent // width)).repeat(width)[:extent]
            layer = layer * signs.reshape([-1 if each == axis else 1 for each in range(len(shape))])
        total = total + layer
    return (total > 0).astype(np.float64)
