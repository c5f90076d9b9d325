"""Compare the speed of libraries: milliseconds natively, instructions under an emulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..runner import Linked
from .instructions import instructions

MILLISECONDS, INSTRUCTIONS = "ms", "instructions"
#: rounds of timing, in turns; seconds and most runs per round; the fastest run counts, since slower ones are disturbed
_ROUNDS, _SECONDS, _REPEATS = 5, 0.2, 64


def compare_speed(libraries: Sequence[Linked], inputs: dict[str, np.ndarray]) -> tuple[str, list[float]] | None:
    """Measure one run of each library; return the unit and the costs.

    None if one cannot run here, or executes too many instructions to count. Raises NumericError if a library fails,
    ToolchainError if one cannot be started.
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
