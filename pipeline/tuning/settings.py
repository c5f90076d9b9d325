"""Settings of a tuning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TuneSettings:
    """How long faster schedules are looked for, in seconds of wall time: 0 leaves every kernel to the rules.

    `trials` is what MetaSchedule may measure for each kernel; 0 leaves it out. `seed` is of what is left to chance.
    """

    seconds: float = 600.0
    seed: int = 0
    trials: int = 64
