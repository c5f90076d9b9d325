"""Select a coreset: a few sequences that together serve all known models.

Greedy selection, as in "Learning Compiler Pass Orders using Coreset and Normalized Value Prediction" (ICML 2023): each
step takes the sequence that lowers the mean over the models of (the best cost in the set ÷ the best known) most. The
reduction of that mean is submodular, so a greedy set of k reaches at least 1 - 1/e of the best set of k.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)


def coreset(costs: Mapping[Name, Sequence[float]], start: Sequence[float], most: int, least: float = 0.0) -> list[Name]:
    """Select up to `most` candidates of `costs`, most valuable first; each lowers the mean by more than `least`.

    `costs[name][m]` is the cost of the candidate on model m, `start[m]` the cost without any, both relative to the best
    known. Of equals the first in `costs` is taken.
    """
    chosen: list[Name] = []
    reached = list(start)
    while len(chosen) < most and costs:
        gains = {name: _gain(row, reached) for name, row in costs.items()}
        best = max(gains, key=gains.__getitem__)
        if gains[best] <= least * len(reached):
            break
        chosen.append(best)
        reached = [min(old, new) for old, new in zip(reached, costs[best], strict=True)]
    return chosen


def _gain(row: Sequence[float], reached: Sequence[float]) -> float:
    """Return the reduction of cost by a candidate, summed over the models."""
    return sum(old - new for old, new in zip(reached, row, strict=True) if new < old)
