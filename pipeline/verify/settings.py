"""Settings of a comparison with ONNX Runtime."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class VerifySettings:
    """How a library is compared with the model in double precision, or with ONNX Runtime where that cannot be had.

    An error up to `tolerance`, relative to the range of its output, always passes; so does `max_error`, where the
    sequence has lossy passes. A larger one passes only as far as rounding explains it: see `verify.bounds`."""

    seed: int = 0
    cases: int = 3
    tolerance: float = 1e-4
    max_error: float = 0.01
