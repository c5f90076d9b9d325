"""`explicit`: `orchestrated` without implicit effects; a pass is kept only if it gains by itself.

An ablation: its distance to `orchestrated` is the worth of implicit effects.
"""

from __future__ import annotations

from ...passes.base import Pass
from ..evaluate.candidates import TAILS, Candidate, starts
from .trace import Trace


def explicit(trace: Trace, seed: int) -> None:
    """Append each pass that lowers the cost by itself; deterministic, `seed` is unused."""
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
