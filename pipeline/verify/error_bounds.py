"""Bound the error of a library's outputs, on numbers alone.

The truth is an evaluation in double precision. ONNX Runtime computes in the model's own precision, as the library does,
but sums in another order: its distance shows the effect of rounding on this model. A library may be `SLACK` times as
far from the truth.

Two norms are bounded. The largest error finds a wrong element among many right ones; the root mean square finds many
slightly wrong elements, even if a few of ONNX Runtime's are far off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

#: largest ratio of two rounding errors of one graph, summed in different orders: measured at most 2.0 on nine models of
#: benchmarks/models.toml, 6.2 on 64 nearly constant sums of 2,048 elements
SLACK = 8.0
#: errors always allowed, in units in the last place of an output's largest magnitude: rounding in its last operators
ULPS = 4.0
#: largest unit in the last place, that of float32: the rounding of narrower floats shows in ONNX Runtime's distance
_WIDEST = 2.0**-23


@dataclass(frozen=True)
class Distance:
    """Norms of an output's errors: the `largest`, and the root mean square `rms`."""

    largest: float = 0.0
    rms: float = 0.0

    @classmethod
    def of(cls, errors: np.ndarray) -> Distance:
        """Compute the norms of absolute errors, one per element."""
        if errors.size == 0:
            return cls()
        largest = float(errors.max())
        # scaled, so that squares neither overflow nor vanish
        return cls(largest, largest * float(np.sqrt(np.mean((errors / largest) ** 2))) if largest else 0.0)

    @classmethod
    def most(cls, distances: Iterable[Distance]) -> Distance:
        """Return the maximum of each norm."""
        found = list(distances)
        return cls(max((each.largest for each in found), default=0.0), max((each.rms for each in found), default=0.0))

    def within(self, other: Distance) -> bool:
        """Return whether neither norm exceeds the other's."""
        return self.largest <= other.largest and self.rms <= other.rms


def allowed_error(tolerance: float, scale: float, magnitude: float, eps: float, reference: Distance) -> Distance:
    """Return the largest errors allowed for an output.

    `scale` is its range, `magnitude` its largest absolute value, `eps` that of its dtype, `reference` ONNX Runtime's
    distance from the truth.
    """
    floor = max(tolerance * scale, ULPS * min(eps, _WIDEST) * magnitude)
    return Distance(max(floor, SLACK * reference.largest), max(floor, SLACK * reference.rms))


def believable(reference: Distance, rounding: Distance, floor: float) -> bool:
    """Return whether rounding alone explains ONNX Runtime's distance from the truth.

    `rounding` is the distance caused by rounding every result of the same evaluation; `floor` is always allowed.
    """
    return reference.largest <= max(floor, SLACK * rounding.largest)


def output_range(values: Sequence[np.ndarray]) -> float:
    """Return the largest minus the smallest finite value; if 0, their magnitude; if 0 too, 1."""
    wide = np.concatenate([np.asarray(each, dtype=np.float64).ravel() for each in values])
    finite = wide[np.isfinite(wide)]
    if finite.size == 0:
        return 1.0
    return float(finite.max() - finite.min()) or float(np.abs(finite).max()) or 1.0


def differences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the absolute differences of elements finite in both."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    return np.abs(one[finite] - other[finite])


def largest_difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of elements finite in both."""
    return float(differences(one, other).max(initial=0.0))


def distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the distance of each element; equal infinities and NaN do not differ, others are infinitely far apart."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(one - other))
    return np.where(np.isnan(apart), np.inf, apart)


def is_float(value: np.ndarray) -> bool:
    """Return whether elements are floats of any width."""
    return value.dtype.kind not in "iub"


def eps_of(value: np.ndarray) -> float:
    """Return the distance of 1 from the next float of that dtype."""
    return float(ml_dtypes.finfo(value.dtype).eps)


def largest_magnitude(values: Sequence[np.ndarray]) -> float:
    """Return the largest absolute value among finite elements; 0 without any."""
    return max((float(np.abs(each[np.isfinite(each)]).max(initial=0.0)) for each in values), default=0.0)
