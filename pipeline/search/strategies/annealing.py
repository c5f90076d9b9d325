"""`annealing`: simulated annealing over sequences, 10 temperatures of 20 steps: a baseline of OPASS."""

from __future__ import annotations

import math
import random

from ..evaluate.candidates import Candidate, neighbours
from .trace import Trace

TEMPERATURES, STEPS = 10, 20
#: a rise of this part of the objective is accepted with probability 1/e at the first temperature
HOT = 0.1


def annealing(trace: Trace, seed: int) -> None:
    choice = random.Random(seed)
    here = Candidate()
    trace.evaluate(here)
    cost = _cost(trace, here)
    for temperature in (HOT * 0.6**level for level in range(TEMPERATURES)):
        for _ in range(STEPS):
            candidate = _change(trace, here, choice)
            trace.evaluate(candidate)
            found = _cost(trace, candidate)
            if found is not None and (cost is None or _accept(cost, found, temperature, choice)):
                here, cost = candidate, found
            if trace.finished:
                return


def _change(trace: Trace, candidate: Candidate, choice: random.Random) -> Candidate:
    """Draw a neighbour: one pass more or another tail; with probability 1/4 one pass less."""
    if candidate.prefix and choice.random() < 0.25:
        place = choice.randrange(len(candidate.prefix))
        return Candidate(candidate.prefix[:place] + candidate.prefix[place + 1 :], candidate.tail)
    return choice.choice(list(neighbours(candidate, trace.passes)))


def _accept(before: int, after: int, temperature: float, choice: random.Random) -> bool:
    return after <= before or (before > 0 and choice.random() < math.exp((before - after) / (before * temperature)))


def _cost(trace: Trace, candidate: Candidate) -> int | None:
    found = trace.evaluator.evaluate(candidate.passes)
    return None if found.footprint is None else found.cost[0]
