"""Partition the orders of candidates, as far as these matter to a search.

    the two likely orders, whole and cut ──► bytes that matter ──► the others, each given up without a path within them

Of an order above the two best and the best of its kind, nothing is asked but that: one pass over its steps, not twenty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ...memory.streaming.partitioner import Partition
from ..evaluate.evaluation import Evaluator
from ..evaluate.scoring import Scorer, Specs, WorkerTask
from .split_plan import SplitPlan
from .stored_splits import stored_partition


class Partitions:
    """Hold the best partitions of one search by form, see `form_key`."""

    def __init__(self, evaluator: Evaluator):
        self._evaluator = evaluator
        self._paths: dict[str, Partition] = {}
        #: most bytes within which there is no path
        self._above: dict[str, float] = {}

    def along(self, asked: Sequence[tuple[Specs, Sequence[SplitPlan]]]) -> list[tuple[SplitPlan, ...]]:
        """Return the plans of each candidate along their best partitions; several are computed at once.

        Those of more bytes than the two best, and than the best of their kind, are left out.
        """
        self._find((specs, plan, math.inf) for specs, plans in asked for plan in _likely(plans))
        self._find(
            [(specs, plan, self._mattering(place, plans)) for specs, plans in asked for place, plan in enumerate(plans)]
        )
        return [
            tuple(along(plan, self._paths[plan.form]) for plan in plans if plan.form in self._paths)
            for _, plans in asked
        ]

    def _mattering(self, place: int, plans: Sequence[SplitPlan]) -> float:
        """Return the most bytes at which a plan is one of the two best, or its kind's best."""
        known = sorted((self._paths[each.form].nbytes, n) for n, each in enumerate(plans) if each.form in self._paths)
        of_kind = [(nbytes, n) for nbytes, n in known if plans[n].cut == plans[place].cut]
        # of plans of equal bytes the first is taken
        return max(rival[0][0] - (rival[0][1] < place) if rival else math.inf for rival in (known[1:2], of_kind))

    def _find(self, wanted: Iterable[tuple[Specs, SplitPlan, float]]) -> None:
        """Partition plans, several at once, each unless it takes more than so many bytes."""
        new: dict[str, tuple[Specs, SplitPlan, float]] = {}
        for specs, plan, most in wanted:
            tried = new[plan.form][2] if plan.form in new else self._above.get(plan.form, -1)
            if plan.form not in self._paths and tried < most:
                new[plan.form] = specs, plan, most
        tasks = [WorkerTask(specs, partial(_path, plan=plan, most=most)) for specs, plan, most in new.values()]
        for (form, (_, _, most)), path in zip(new.items(), self._evaluator.run(tasks)):
            if path is None:
                self._above[form] = most
            else:
                self._paths[form] = path


def along(plan: SplitPlan, path: Partition) -> SplitPlan:
    """Return the plan with the regions of a partition."""
    return replace(plan, regions=path.regions, nbytes=path.nbytes)


def _likely(plans: Sequence[SplitPlan]) -> list[SplitPlan]:
    """Return the two plans of least peaks with whole kernels, and the first of another kind.

    Of equal peaks, one.
    """
    different: dict[tuple[int, bool], SplitPlan] = {}
    for plan in sorted(plans, key=lambda plan: plan.whole):
        different.setdefault((plan.whole, plan.cut), plan)
    best = list(different.values())
    return [plan for n, plan in enumerate(best) if n < 2 or all(plan.cut != each.cut for each in best[:n])]


def _path(_: Scorer, plan: SplitPlan, most: float) -> Partition | None:
    return stored_partition(plan.form, plan.program, plan.splits, plan.alignment, most)
