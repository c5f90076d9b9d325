"""`explicit`: `orchestrated` without implicit effects. A pass is kept only where it gains by itself.

It is there to be compared with: what passes make possible for others is worth the difference.
"""

from __future__ import annotations

from ...passes.base import Pass
from ..evaluate.candidates import TAILS, Candidate, starts
from .trace import Trace


def explicit(trace: Trace, seed: int) -> None:
    """`seed` is not used: nothing is left to chance."""
    if trace.evaluate_all(starts()):
        return
    tail = trace.best_candidate.tail
    prefix: tuple[Pass, ...] = ()
    kept = [prefix]
    for each in trace.passes:
        longer = (*prefix, each)
        if trace.finished:
            return
        if _cost(trace, Candidate(longer, tail)) < _cost(trace, Candidate(prefix, tail)):
            prefix = longer
            kept.append(prefix)
    trace.evaluate_all(Candidate(each, tail) for each in reversed(kept) for tail in TAILS)


def _cost(trace: Trace, candidate: Candidate) -> tuple[float, ...]:
    trace.evaluate(candidate)
    found = trace.evaluator.evaluate(candidate.passes)
    return (float("inf"),) if found.footprint is None else found.cost
