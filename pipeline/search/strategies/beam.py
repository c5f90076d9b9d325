"""`beam`: beam search of width 3 over sequences by length, a baseline of OPASS."""

from __future__ import annotations

from ..evaluate.candidates import Candidate, neighbours
from .trace import Trace

WIDTH = 3
#: rounds without a better state before it ends
PATIENCE = 2


def beam(trace: Trace, seed: int) -> None:
    """Search by beam; `seed` is unused: ties are broken by the order of the catalogue."""
    trace.evaluate(Candidate())
    frontier, seen, idle = [Candidate()], set[int](), 0
    while idle < PATIENCE and frontier:
        improved = False
        children: dict[int, tuple[tuple[int, ...], Candidate]] = {}
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
