"""Settings of an evaluation on samples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvaluateSettings:
    """Settings of an evaluation: the metric, by default that of the task, and the most samples.

    `samples` limits all, None is no limit; `emulated` those under an emulator, or on a device on the desk. `tolerance` is that of
    verification, relative to the range of an output, and `max_error` that of libraries with lossy passes.
    """

    metric: str | None = None
    samples: int | None = None
    emulated: int = 64
    tolerance: float = 1e-4
    max_error: float = 0.01
