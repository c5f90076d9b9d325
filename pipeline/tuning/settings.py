"""Settings of a tuning."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TuneSettings:
    """Limits of a tuning: `seconds` of wall time; 0 leaves every kernel to the rules.

    `trials` is the most schedules MetaSchedule may measure per kernel; 0 skips it. `seed` is for random choices.
    """

    seconds: float = 600.0
    seed: int = 0
    trials: int = 64
