"""Refine a winner by results that grow over operands of other sizes, as long as its cycles hardly grow.

    winner ──► regions whose results may grow ──► more and more bytes allowed, until cycles are few enough,
                                                  and a little more, if that saves more cycles than it costs bytes

Lower peaks split more steps, whose rows read their weights again: the fewest bytes may take much more time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..evaluate.costs import costs_task, cycles_of
from ..evaluate.evaluation import Evaluation, Evaluator
from .levers import Attempt, Refinement
from .splitting import Splitter, growing_task

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
    own = costs_task(refinement.best, evaluator.target)
    grown, costs = evaluator.attempt([growing_task(plan, _PARTS, _WORTH), own])
    if not grown or costs is None:
        return refinement
    splitter.reduce(grown)
    lower = [each for each in splitter.best_of(found, grown, refinement.ram) if each is not None and _ram(each) < refinement.ram]
    kept = _acceptable(evaluator, refinement, plan.extra_compute, lower, _CYCLES * costs.cycles)
    return min(kept, default=_Grown(math.inf, refinement)).refinement


@dataclass(frozen=True, order=True)
class _Grown:
    """Refinement with growth, by its bytes × cycles."""

    cost: float
    refinement: Refinement = field(compare=False)


def _acceptable(
    evaluator: Evaluator, refinement: Refinement, extra_compute: float, lower: Sequence[Evaluation], most: float
) -> Iterator[_Grown]:
    """Yield those of `lower`, the least ram first, within `most` cycles: the first, and others of hardly more ram."""
    least = math.inf
    for each, cycles in zip(lower, cycles_of(evaluator, lower)):
        if _ram(each) > _MORE * least:
            return
        if cycles is not None and cycles <= most:
            least = min(least, _ram(each))
            yield _Grown(_ram(each) * cycles, refinement.taken(Attempt(GROW, each, extra_compute)))


def _ram(evaluation: Evaluation) -> int:
    assert evaluation.footprint is not None
    return evaluation.footprint.ram
