"""What a run of each of several libraries takes, side by side: milliseconds natively, instructions under an emulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .instructions import instructions
from .runner import Linked

MILLISECONDS, INSTRUCTIONS = "ms", "instructions"
#: each library is timed this often, in turns, for so long, and as many runs at most; its fastest run counts, since what
#: other runs take longer is other work on the machine
_ROUNDS, _SECONDS, _REPEATS = 5, 0.2, 64


def compare_speed(libraries: Sequence[Linked], inputs: dict[str, np.ndarray]) -> tuple[str, list[float]] | None:
    """The unit, and what one run of each takes; None where one cannot be run here, or executes too much to be counted.

    Raises NumericError where a library fails, ToolchainError where one cannot be started.
    """
    if any(each.runner.command is None for each in libraries):
        return None
    if all(each.runner.native for each in libraries):
        best = [float("inf")] * len(libraries)
        for _ in range(_ROUNDS):
            for number, each in enumerate(libraries):
                report, _ = each.run([inputs], _REPEATS, _SECONDS)
                best[number] = min(best[number], report["min_ns"] / 1e6)
        return MILLISECONDS, best
    counts = []
    for each in libraries:
        count = instructions(each, inputs)
        if count is None:
            return None
        counts.append(float(count))
    return INSTRUCTIONS, counts
