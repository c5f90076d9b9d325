"""Compare a network of splits with its unsplit self, in result and in time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from passfit.errors import PassfitError

from .cases import Case
from .judge import ROUNDED, STEPS, Result, difference, judge

if TYPE_CHECKING:
    from passfit.backend.built import LoadedLibrary
    from passfit.kernels.lower.lower import Lowered

    from .execute import Compiled

#: a split may take this many times what the model of cycles says, and so many seconds that a run's own noise is less
_SLOWER, _NOISE = 3.0, 50e-6
#: turns of both libraries; the best of each counts
_TURNS, _MORE_TURNS = 7, 60


def has_splits(case: Case) -> bool:
    return any(spec.startswith("split-") for spec in case.passes)


def against_unsplit(
    result: Result, case: Case, part: Compiled, library: LoadedLibrary, outputs: Sequence[np.ndarray], folder: Path
) -> Result:
    """Return the verdict on a network of splits whose outputs were judged: `wrong` or `slow` beside its unsplit self."""
    from .execute import compile_case, linked, outputs_of

    plain = replace(case, passes=tuple(spec for spec in case.passes if not spec.startswith("split-")))
    try:
        twin = compile_case(plain, 0, folder)
        other = linked([(twin, plain.inputs)], folder)
        (wanted,) = outputs_of(other, [(twin, plain.inputs)])
    except PassfitError as error:
        return replace(result, reason=f"{result.reason}; unsplit: {error}".lstrip("; "))
    if result.verdict == "wrong":
        right = judge(result.seed, plain, wanted).verdict != "wrong"
        return replace(result, reason=f"{result.reason}; {'right' if right else 'wrong'} unsplit")
    # whole numbers are the same; floats are summed in another order, which may move a rounding of another network
    if reason := difference(outputs, wanted, STEPS if case.title in ROUNDED and case.title != "qdq" else 0.0):
        return replace(result, verdict="wrong", reason=f"differs from its unsplit self: {reason}")
    predicted = cycles(part.lowered) / cycles(twin.lowered)
    for turns in (_TURNS, _MORE_TURNS):
        one, two = _seconds((library, part.named(case.inputs)), (other, twin.named(plain.inputs)), turns)
        if one <= _SLOWER * max(predicted, 1.0) * two + _NOISE:
            return result
    reason = f"{1e6 * one:.0f} µs, unsplit {1e6 * two:.0f}: {one / two:.1f} ×, predicted {predicted:.1f} ×"
    return replace(result, verdict="slow", reason=reason)


def cycles(lowered: Lowered) -> float:
    """Return the predicted cycles of a run."""
    from passfit.backend.built import host
    from passfit.tir.counts.operation_counts import predicted_cycles

    each = {name: predicted_cycles(kernel, host()) for name, kernel in lowered.kernels.items()}
    return sum(each[call.step.kernel] * call.runs for call in lowered.program.calls())


def _seconds(one: tuple[LoadedLibrary, dict], other: tuple[LoadedLibrary, dict], turns: int) -> tuple[float, float]:
    """Return the best time of a run of each, turn by turn."""
    best = [float("inf")] * 2
    for _ in range(turns):
        for number, (library, inputs) in enumerate((one, other)):
            start = time.perf_counter()
            library.run(inputs)
            best[number] = min(best[number], time.perf_counter() - start)
    return best[0], best[1]
