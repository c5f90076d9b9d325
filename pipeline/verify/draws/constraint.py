"""Describe the values an operator can take for an operand: an interval, values to avoid, and a form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum


class Strength(IntEnum):
    """Cost of breaking a constraint, from none to an error of the model."""

    #: nothing: any value would do
    ANY = 0
    #: results would tell nothing: a comparison that is always true
    TELLS = 1
    #: results would be NaN, infinite, or left open by the specification
    UNDEFINED = 2
    #: the model stops with an error
    FAILS = 3


@dataclass(frozen=True)
class Form:
    """Relation between the elements of an operand, beyond the interval of each.

    | kind | elements |
    | --- | --- |
    | distinct | differ along `axis`, as positions of one axis |
    | unique | differ everywhere |
    | coordinates | along the last axis, element j is in an axis of `sizes[j]` elements |
    | places | coordinates, no two rows of them alike |
    | boxes | along the last axis: x1, y1, x2, y2 within a picture of `sizes` (width, height) |
    | rois | a row number below `sizes[2]`, then a box |
    | mask | 0 or 1; 1 at the first position of the last axis |
    | hides | 0 or 1; 0 at the first position of the last axis |
    | additive | sometimes 0 or a very negative number, 0 at the first position of the last axis |
    | exact | `sizes`, repeated |
    | sparse | none, one or half differ from `sizes[0]`, on the side of `sizes[1]` |
    | shape | −1, then 1: a legal shape for every tensor |
    """

    kind: str
    sizes: tuple[float, ...] = ()
    axis: int = 0


@dataclass(frozen=True)
class Constraint:
    """Closed interval of values, single values in it to avoid, and a form; `strength` says what else happens.

    `magnitude` bounds integers whose interval is open or vast: sums and products of larger ones may overflow.
    """

    low: float = -math.inf
    high: float = math.inf
    strength: Strength = Strength.UNDEFINED
    avoid: frozenset[float] = frozenset()
    form: Form | None = None
    magnitude: float = math.inf

    def within(self, low: float, high: float, *, avoid: frozenset[float] = frozenset()) -> Constraint:
        """Return a constraint of the same strength on other values, without a form."""
        return Constraint(low, high, self.strength, avoid)


def meet(one: Constraint, other: Constraint) -> Constraint:
    """Return the constraint that keeps both; the stronger one where they exclude each other.

    Of two that only make results telling, ranges are joined. Where the model would fail outside a range, all of it is
    used: token numbers are also compared with 0.
    """
    if one.strength < other.strength:
        one, other = other, one
    low, high = max(one.low, other.low), min(one.high, other.high)
    if one.strength == Strength.FAILS and other.strength < Strength.UNDEFINED:
        low = one.low if math.isfinite(one.low) else other.low
        high = one.high if math.isfinite(one.high) else other.high
    elif one.strength == other.strength == Strength.TELLS:
        low, high = min(one.low, other.low), max(one.high, other.high)
    if low > high:
        low, high = one.low, one.high
    form = _form(one, other)
    magnitude = min(one.magnitude, other.magnitude)
    return Constraint(low, high, one.strength, one.avoid | other.avoid, form, magnitude)


def _form(one: Constraint, other: Constraint) -> Form | None:
    """Return the form of the stronger constraint, if any; of two lists of coordinates, the smaller sizes."""
    if one.form is None or other.form is None:
        return one.form or other.form
    coordinates = ("coordinates", "places")
    if one.form.kind in coordinates and other.form.kind in coordinates and len(one.form.sizes) == len(other.form.sizes):
        sizes = tuple(map(min, one.form.sizes, other.form.sizes))
        return replace(one.form if one.form.kind == "places" else other.form, sizes=sizes)
    return one.form


def index(size: int | None, *, negative: bool = True, form: Form | None = None) -> Constraint:
    """Constrain positions along an axis of `size` elements; of an unknown size, to its first and last."""
    known = 1 if size is None else max(1, size)
    return Constraint(-known if negative else 0, known - 1, Strength.FAILS, form=form)


def count(most: float, least: float = 0) -> Constraint:
    """Constrain lengths and numbers of things."""
    return Constraint(least, max(least, most), Strength.FAILS)


def domain(low: float = -math.inf, high: float = math.inf, avoid: float | None = None) -> Constraint:
    """Constrain the arguments of a function to its domain."""
    return Constraint(low, high, Strength.UNDEFINED, frozenset() if avoid is None else frozenset({avoid}))


def telling(low: float, high: float) -> Constraint:
    """Constrain integers to a range in which results differ."""
    return Constraint(low, high, Strength.TELLS)


def suggest(magnitude: float = math.inf, form: Form | None = None) -> Constraint:
    """Bound integers, or suggest a form; any value would do."""
    return Constraint(strength=Strength.ANY, form=form, magnitude=magnitude)
