"""Refine a winner by results that grow over operands of other sizes, as long as its cycles hardly grow.

    winner ──► regions whose results may grow ──► more and more bytes allowed, until cycles are few enough

Lower peaks split more steps, whose rows read their weights again: the fewest bytes may take much more time.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..evaluate.costs import cycles_of
from ..evaluate.evaluation import Evaluation, Evaluator
from .levers import Attempt, Refinement
from .split_plan import SplitPlan
from .splitting import Splitter

#: name of the refinement step
GROW = "grow"
#: cycles allowed, to those of the winner
_CYCLES = 1.1
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
    cycles = None
    for each in _tried(splitter, found, plan, refinement.ram):
        cycles = cycles or cycles_of(evaluator, refinement.best)
        count = cycles_of(evaluator, each)
        if cycles is not None and count is not None and count <= _CYCLES * cycles:
            return refinement.taken(Attempt(GROW, each, plan.extra_compute))
    return refinement


def _tried(splitter: Splitter, found: Evaluation, plan: SplitPlan, ram: int) -> Iterator[Evaluation]:
    """Yield the plans of less than `ram` bytes, the least first."""
    for grown in splitter.growing(plan, _PARTS, _WORTH):
        best = splitter.best(found, grown, ram)
        if best is not None and best.footprint is not None and best.footprint.ram < ram:
            yield best
