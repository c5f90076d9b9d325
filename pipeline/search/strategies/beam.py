"""`beam`: the best few states of each length, as OPASS's authors compare with (width 3)."""

from __future__ import annotations

from ..evaluate.candidates import Candidate, neighbours
from .trace import Trace

WIDTH = 3
#: rounds without a better state before it gives up
PATIENCE = 2


def beam(trace: Trace, seed: int) -> None:
    """`seed` is not used: ties are broken by the order of the catalogue."""
    trace.evaluate(Candidate())
    frontier, seen, idle = [Candidate()], set(), 0
    while idle < PATIENCE and frontier:
        improved, children = False, {}
        for parent in frontier:
            for candidate in neighbours(parent, trace.passes):
                improved |= trace.evaluate(candidate)
                found = trace.evaluator.evaluate(candidate.passes)
                if found.footprint is not None and found.key not in seen:
                    children.setdefault(found.key, (found.score, candidate))
                if trace.finished:
                    return
        best = sorted(children.items(), key=lambda child: child[1][0])[:WIDTH]
        seen.update(key for key, _ in best)
        frontier = [candidate for _, (_, candidate) in best]
        idle = 0 if improved else idle + 1
