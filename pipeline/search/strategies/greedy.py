"""`greedy`: the best stock order, then the best single change, again and again until none helps."""

from __future__ import annotations

from ..evaluate.candidates import neighbours, starts
from .trace import Trace


def greedy(trace: Trace, seed: int) -> None:
    """`seed` is not used: nothing is left to chance."""
    if trace.evaluate_all(starts()):
        return
    improved = True
    while improved:
        before = trace.best
        if trace.evaluate_all(neighbours(trace.best_candidate, trace.passes)):
            return
        improved = trace.best is not before
