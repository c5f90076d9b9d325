"""`random`: walks of random actions from TVM's default."""

from __future__ import annotations

import random

from ..evaluate.candidates import Candidate, neighbours
from .trace import Trace

#: actions in one walk
LENGTH = 8


def random_walk(trace: Trace, seed: int) -> None:
    """Evaluate all states on random walks until the limits, or LENGTH walks find none."""
    choice = random.Random(seed)
    trace.evaluate(Candidate())
    stale = 0
    while not trace.finished and stale < LENGTH:
        here, before = Candidate(), trace.evaluator.count
        for _ in range(LENGTH):
            here = choice.choice(list(neighbours(here, trace.passes)))
            trace.evaluate(here)
            if trace.finished:
                return
        stale = stale + 1 if trace.evaluator.count == before else 0
