"""How far a library may be from the truth: the law, on numbers alone.

The truth is an evaluation in double precision. ONNX Runtime computes in the model's own precision, as the library does,
but sums in another order: its distance shows what rounding does to this model. A library may be as far, times `SLACK`.

Two norms are bound. The largest error finds a wrong element among many right ones; the root mean square finds many
elements that are slightly wrong where a few of ONNX Runtime's are off by much.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

#: ratio of two errors by rounding alone, of the same graph summed in another order: measured 2.0 at most on nine models of
#: benchmarks/models.toml, 6.2 on 64 nearly constant sums of 2,048 elements
SLACK = 8.0
#: units in the last place, of the largest magnitude in an output, that never count: roundings of its last operators
ULPS = 4.0
#: a unit in the last place is of float32 at most: narrower floats show their rounding in ONNX Runtime's distance
_WIDEST = 2.0**-23


@dataclass(frozen=True)
class Distance:
    """Errors of the elements of an output: the `largest`, and the root mean square, `rms`."""

    largest: float = 0.0
    rms: float = 0.0

    @classmethod
    def of(cls, errors: np.ndarray) -> Distance:
        """Of absolute errors, one an element."""
        if errors.size == 0:
            return cls()
        largest = float(errors.max())
        # scaled, so that squares neither overflow nor vanish
        return cls(largest, largest * float(np.sqrt(np.mean((errors / largest) ** 2))) if largest else 0.0)

    @classmethod
    def most(cls, distances: Iterable[Distance]) -> Distance:
        """The largest of each norm."""
        found = list(distances)
        return cls(max((each.largest for each in found), default=0.0), max((each.rms for each in found), default=0.0))

    def within(self, other: Distance) -> bool:
        """Whether neither norm is above the other's."""
        return self.largest <= other.largest and self.rms <= other.rms


def allowed(tolerance: float, scale: float, magnitude: float, eps: float, reference: Distance) -> Distance:
    """The most an output's errors may be. `scale` is its range, `magnitude` its largest absolute value, `eps` that of
    its dtype, `reference` ONNX Runtime's distance from the truth."""
    floor = max(tolerance * scale, ULPS * min(eps, _WIDEST) * magnitude)
    return Distance(max(floor, SLACK * reference.largest), max(floor, SLACK * reference.rms))


def believable(reference: Distance, rounding: Distance, floor: float) -> bool:
    """Whether ONNX Runtime's distance from a truth needs no other cause than rounding.

    `rounding` is the distance that rounding every result of the same evaluation makes; `floor` is allowed anyway.
    """
    return reference.largest <= max(floor, SLACK * rounding.largest)
