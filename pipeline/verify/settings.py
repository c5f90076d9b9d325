"""Settings of a comparison with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, eq=False)
class UserSamples:
    """Some of the user's samples by name, the inputs of each, and the digest of all."""

    inputs: Mapping[str, dict[str, np.ndarray]]
    digest: str


@dataclass(frozen=True)
class VerifySettings:
    """Settings of a comparison with the model in double precision, or else with ONNX Runtime.

    An error up to `tolerance`, relative to the range of its output, always passes; up to `max_error` if the sequence has
    lossy passes. A larger one passes only as far as rounding explains it: see `verify/error_bounds.py`. `image` keeps the image
    of a target without an operating system, with the inputs of the comparison and its outputs. `samples` are the user's own,
    compared next to the seeded cases.
    """

    seed: int = 0
    cases: int = 3
    tolerance: float = 1e-4
    max_error: float = 0.01
    image: bool = False
    samples: UserSamples | None = None
