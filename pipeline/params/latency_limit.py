"""Read limits of latency as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import ConfigError

_LIMIT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|x)")
_MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class LatencyLimit:
    """Longest time a run may take, absolute or relative.

    `ratio` counts without `milliseconds`: it is of the time of `tvm-default`'s whole kernels, scheduled by the same rules.
    """

    milliseconds: float | None = None
    ratio: float = 0.0

    def __str__(self) -> str:
        return f"{self.milliseconds:g}ms" if self.milliseconds is not None else f"{self.ratio:g}x"


def parse_latency(text: str) -> LatencyLimit:
    """Read `20ms`, `0.5s`, `800us`, or `1.5x`. Raises ConfigError."""
    match = _LIMIT.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise ConfigError(f"'{text}' is not a latency limit.", "Write it like 20ms, 0.5s, or 1.5x.")
    number, unit = float(match[1]), match[2]
    return LatencyLimit(ratio=number) if unit == "x" else LatencyLimit(milliseconds=number * _MILLISECONDS[unit])
