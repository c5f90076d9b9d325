"""Refine a winner by results that grow over operands, as long as its cycles hardly grow.

    winner ──► regions whose results may grow ──► more and more bytes allowed, until cycles are few enough,
                                                  and a little more, if that saves more cycles than it costs bytes

Lower peaks split more steps, whose rows read their weights again: the fewest bytes may take much more time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..effort import FINALISTS
from ..evaluate.costs import cycles_of
from ..evaluate.evaluation import Evaluation, Evaluator
from .levers import Attempt, Refinement
from .split_plan import SplitPlan
from .splitting import Splitter

#: name of the refinement step
GROW = "grow"
#: cycles allowed, to those of the winner
_CYCLES = 1.1
#: bytes allowed on top of the least, as a factor, where they save more cycles
_MORE = 1.05
#: parts of the bytes between the least peak and the winner's that are allowed on top of the least: for a winner,
#: and for a choice by time
_PARTS, ALL_PARTS = (0.0, 0.25, 0.5, 0.75), tuple(part / 10 for part in range(10))
#: plans evaluated at once; the same for any number of workers, and so the result
_AT_ONCE = 2
#: least part of the winner's bytes that is worth another plan
_WORTH = 0.02


def try_growth(
    evaluator: Evaluator, splitter: Splitter, refinement: Refinement, max_extra_compute: float
) -> Refinement:
    """Return the refinement with the least ram, in bytes, of plans whose results grow; itself if none is lower."""
    found = evaluator.evaluate(refinement.best.module_passes)
    plan = splitter.lowest(found, splitter.plans(found), max_extra_compute)
    if refinement.levers[-1].arena <= plan.unavoidable:
        return refinement
    return min(
        _acceptable(evaluator, splitter, refinement, plan, found), default=_Grown(math.inf, refinement)
    ).refinement


def grows_below(
    evaluator: Evaluator, splitter: Splitter, found: Evaluation, max_extra_compute: float, ram: int
) -> bool:
    """Return whether growing results promise a state less than `ram` bytes, before memory is shared."""
    if evaluator.effort.over(FINALISTS):
        return False
    plan = splitter.lowest(found, splitter.plans(found), max_extra_compute)
    around = found.result.ram - found.result.arena
    return any(each.nbytes + around < ram for each in islice(growing_plans(splitter, plan), 1))


@dataclass(frozen=True, order=True)
class _Grown:
    """Refinement with growth, by its bytes × cycles."""

    cost: float
    refinement: Refinement = field(compare=False)


def _acceptable(
    evaluator: Evaluator, splitter: Splitter, refinement: Refinement, plan: SplitPlan, found: Evaluation
) -> Iterator[_Grown]:
    """Yield refinements within the cycles allowed: the least ram, and those of hardly more."""
    limit: float | None = None
    least = math.inf
    for tried in _try(splitter, found, plan, refinement.ram):
        asked = tried if limit is not None else [*tried, refinement.best]
        counted = cycles_of(evaluator, asked)
        if limit is None:
            limit = _CYCLES * (counted[-1] or 0)
        for each, cycles in zip(tried, counted):
            if each.result.ram > _MORE * least:
                return
            if cycles is not None and cycles <= limit:
                least = min(least, each.result.ram)
                yield _Grown(each.result.ram * cycles, refinement.taken(Attempt(GROW, each, plan.extra_compute)))


def _try(splitter: Splitter, found: Evaluation, plan: SplitPlan, below: int) -> Iterator[list[Evaluation]]:
    """Yield plans of a ram `below` so many bytes, a few at once, the least first."""
    growing = growing_plans(splitter, plan)
    while grown := list(islice(growing, _AT_ONCE)):
        splitter.reduce(grown)
        lower = [each for each in splitter.best_of(found, grown, below) if each is not None and each.result.ram < below]
        if lower:
            yield lower


def growing_plans(splitter: Splitter, plan: SplitPlan, parts: Sequence[float] = _PARTS) -> Iterator[SplitPlan]:
    """Yield plans of the steps of `plan` whose results grow, the least bytes first; `parts` as in `Splitter.growing`."""
    return splitter.growing(plan, parts, _WORTH)
