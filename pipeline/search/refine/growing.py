"""Refine a winner by results that grow over operands of other sizes, as long as its cycles hardly grow.

    winner ──► regions whose results may grow ──► more and more bytes allowed, until cycles are few enough,
                                                  and a little more, if that saves more cycles than it costs bytes

Lower peaks split more steps, whose rows read their weights again: the fewest bytes may take much more time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

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
#: parts of the bytes between the least peak and the winner's that are allowed on top of the least
_PARTS = (0.0, 0.25, 0.5, 0.75)
#: least part of the winner's bytes that is worth another plan
_WORTH = 0.02


def with_growth(evaluator: Evaluator, splitter: Splitter, refinement: Refinement, max_extra_compute: float) -> Refinement:
    """Return the refinement with the least ram, in bytes, of plans whose results grow; itself if none is lower.

    Libraries of several threads keep results apart.
    """
    if evaluator.target.threads > 1:
        return refinement
    found = evaluator.evaluate(refinement.best.module_passes)
    plan = splitter.lowest(found, splitter.plans(found), max_extra_compute)
    if refinement.levers[-1].arena <= plan.unavoidable:
        return refinement
    return min(_acceptable(evaluator, splitter, refinement, plan, found), default=_Grown(math.inf, refinement)).refinement


@dataclass(frozen=True, order=True)
class _Grown:
    """Refinement with growth, by its bytes × cycles."""

    cost: float
    refinement: Refinement = field(compare=False)


def _acceptable(
    evaluator: Evaluator, splitter: Splitter, refinement: Refinement, plan: SplitPlan, found: Evaluation
) -> Iterator[_Grown]:
    """Yield refinements within the cycles allowed: the least ram, and those of hardly more."""
    limit = least = math.inf
    for ram, each in _tried(splitter, found, plan, refinement.ram):
        if ram > _MORE * least:
            return
        if limit == math.inf:
            limit = _CYCLES * (cycles_of(evaluator, refinement.best) or 0)
        cycles = cycles_of(evaluator, each)
        if cycles is not None and cycles <= limit:
            least = min(least, ram)
            yield _Grown(ram * cycles, refinement.taken(Attempt(GROW, each, plan.extra_compute)))


def _tried(splitter: Splitter, found: Evaluation, plan: SplitPlan, below: int) -> Iterator[tuple[int, Evaluation]]:
    """Yield the plans of a ram `below` so many bytes, each with its own, the least first."""
    for grown in splitter.growing(plan, _PARTS, _WORTH):
        best = splitter.best(found, grown, below)
        if best is not None and best.footprint is not None and best.footprint.ram < below:
            yield best.footprint.ram, best
