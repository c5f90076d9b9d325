"""`greedy`: hill climbing from the best stock order by the best single change."""

from __future__ import annotations

from ..evaluate.candidates import neighbours, starts
from .trace import Trace


def greedy(trace: Trace, seed: int) -> None:
    """Climb from the best start until no neighbour is better; deterministic, `seed` is unused."""
    if trace.evaluate_all(starts()):
        return
    improved = True
    while improved:
        before = trace.best
        if trace.evaluate_all(neighbours(trace.best_candidate, trace.passes)):
            return
        improved = trace.best is not before
