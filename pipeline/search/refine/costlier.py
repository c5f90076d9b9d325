"""Refine a winner with passes that trade arithmetic for memory, within the limit of extra compute.

    winner ──► a pass replaced by a costlier variant ──► split ──► more and more rows at a time, until cycles are few enough

Single rows would take the least memory, but each reads all weights again: an encoder took 1.7 × the time by single rows,
1.1 × by pairs, which cost 2 KiB of the 17 saved.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...memory.streaming.rematerialise import work_of
from ...passes.base import ModulePass
from ..evaluate.costs import cycles_of
from ..evaluate.evaluation import Evaluation, Evaluator
from .levers import Attempt, Refinement
from .split_plan import SplitPlan, lowest
from .splitting import Splitter

#: name of the refinement step
COSTLIER = "costlier"
#: fewest rows at a time, the least memory first
ROWS = (2, 3, 4, 6, 8)


def try_costlier(
    evaluator: Evaluator, splitter: Splitter, refinement: Refinement, max_extra_compute: float
) -> Refinement:
    """Return the refinement with the costlier pass of least ram, if any is lower than the winner.

    `max_extra_compute` limits extra arithmetic and extra cycles, as a fraction of the winner's.
    """
    variants = list(_variants(refinement.best.module_passes))
    if not variants:
        return refinement
    own = lowest(splitter.plans(evaluator.evaluate(refinement.best.module_passes)))
    if refinement.levers[-1].arena <= own.unavoidable:
        return refinement
    (cycles,) = cycles_of(evaluator, [refinement.best])
    for found in evaluator.evaluate_all(variants):
        if found.footprint is None or cycles is None:
            continue
        plan = lowest(splitter.plans(found))
        extra = work_of(plan.program, plan.splits) / work_of(own.program, own.splits) - 1
        if not 0 < extra <= max_extra_compute:
            continue
        for tried in _enlarge_groups(splitter, found, plan, refinement.ram):
            (count,) = cycles_of(evaluator, [tried])
            if count is not None and count <= (1 + max_extra_compute) * cycles:
                refinement = refinement.taken(Attempt(COSTLIER, tried, extra))
                break
    return refinement


def _variants(passes: tuple[ModulePass, ...]) -> Iterator[tuple[ModulePass, ...]]:
    """Yield the sequence with each pass replaced by each of its costlier variants."""
    for place, each in enumerate(passes):
        for costlier in each.costlier():
            yield (*passes[:place], costlier, *passes[place + 1 :])


def _enlarge_groups(splitter: Splitter, found: Evaluation, plan: SplitPlan, ram: int) -> Iterator[Evaluation]:
    """Yield plans of more and more rows at a time, while they take less than `ram` bytes."""
    for fewest in ROWS:
        grouped = splitter.enlarge_groups(plan, fewest)
        best = None if grouped is None else splitter.best(found, grouped, ram)
        if best is None or best.footprint is None or best.footprint.ram >= ram:
            return
        yield best
