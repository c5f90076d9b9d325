"""`annealing`: simulated annealing over sequences, 10 temperatures of 20 steps, as OPASS's authors compare with."""

from __future__ import annotations

import math
import random

from ..actions import Candidate, neighbours
from ..strategy import Trace

TEMPERATURES, STEPS = 10, 20
#: a rise of this part of ram is accepted with probability 1/e at the first temperature
HOT = 0.1


def annealing(trace: Trace, seed: int) -> None:
    choice = random.Random(seed)
    here = Candidate()
    trace.evaluate(here)
    ram = _ram(trace, here)
    for temperature in (HOT * 0.6**level for level in range(TEMPERATURES)):
        for _ in range(STEPS):
            candidate = _change(here, choice)
            trace.evaluate(candidate)
            found = _ram(trace, candidate)
            if found is not None and (ram is None or _accepted(ram, found, temperature, choice)):
                here, ram = candidate, found
            if trace.finished:
                return


def _change(candidate: Candidate, choice: random.Random) -> Candidate:
    """A pass more, another tail, or, one time in four, a pass less."""
    if candidate.prefix and choice.random() < 0.25:
        place = choice.randrange(len(candidate.prefix))
        return Candidate(candidate.prefix[:place] + candidate.prefix[place + 1 :], candidate.tail)
    return choice.choice(list(neighbours(candidate)))


def _accepted(before: int, after: int, temperature: float, choice: random.Random) -> bool:
    return after <= before or choice.random() < math.exp((before - after) / (before * temperature))


def _ram(trace: Trace, candidate: Candidate) -> int | None:
    footprint = trace.evaluator.evaluate(candidate.passes).footprint
    return None if footprint is None else footprint.ram
