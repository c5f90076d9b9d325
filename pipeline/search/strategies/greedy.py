"""`greedy`: the best stock order, then the best single change, again and again until none helps."""

from __future__ import annotations

from ..actions import Candidate, neighbours, starts
from ..strategy import Trace


def greedy(trace: Trace, seed: int) -> None:
    """`seed` is not used: nothing is left to chance."""
    here = Candidate()
    for candidate in starts():
        if trace.evaluate(candidate):
            here = candidate
        if trace.finished:
            return
    improved = True
    while improved:
        improved = False
        for candidate in neighbours(here, trace.passes):
            if trace.evaluate(candidate):
                here, improved = candidate, True
            if trace.finished:
                return
