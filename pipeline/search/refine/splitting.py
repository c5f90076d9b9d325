"""Search split plans below the floor of whole kernels: streaming regions and repeats.

    cut or not ─► order ─► repeats ─► path of least fullest edge (a partition) ─► redundant regions removed

Plans are compared on programs without kernels: a streamed kernel is made only for the footprint of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...memory import CHEAP_ORDERS
from ...memory.streaming.group_rows import coarser
from ...memory.streaming.partition import partition_within
from ...memory.streaming.partitioner import Partitioner, StreamedSteps
from ...memory.streaming.region_forms import KnownForms
from ...memory.streaming.rematerialise import TRIED_STEPS, RepeatResult, work_of
from ...passes.program.cut_sums import CutSums
from ...passes.program.order import Order
from ...passes.sequence.sequence import specs_of
from ...program import Program, Splits
from ...program.form import form_key
from ..evaluate.evaluation import Evaluation, Evaluator
from ..evaluate.scoring import Arrangement, Scorer, Specs, WorkerTask
from .bodies import body_splits
from .partitions import Partitions, along
from .split_plan import SplitPlan, lowest
from .stored_splits import Sharings, stored_repeats


class Splitter:
    """Plan splits for the candidates of one search, with cached results."""

    def __init__(self, evaluator: Evaluator):
        self._evaluator = evaluator
        self._partitions = Partitions(evaluator)
        #: by form, see `form_key`: the best repeats by limit of extra compute and of steps
        self._repeating: dict[tuple[str, float, int], RepeatResult] = {}

    def plans(self, found: Evaluation) -> tuple[SplitPlan, ...]:
        """Return the plans of `found` that matter to a search: by order, with whole and cut sums."""
        (plans,) = self.plans_of([found])
        return plans

    def share(self, plans: Iterable[SplitPlan]) -> None:
        """Compute the sharings of all plans, several at once."""
        different = {plan.made: plan for plan in plans}.values()
        tasks = [WorkerTask((), partial(_sharings, plan=plan)) for plan in different]
        for plan, sharings in zip(different, self._evaluator.run(tasks)):
            plan.keep_sharings(sharings)

    def reduce(self, plans: Iterable[SplitPlan]) -> None:
        """Remove redundant regions of all plans, several at once."""
        different = {plan.made: plan for plan in plans}.values()
        tasks = [WorkerTask((), partial(_reduce, plan=plan)) for plan in different]
        for plan, (sharings, regions, fewer) in zip(different, self._evaluator.run(tasks)):
            plan.keep_sharings(sharings)
            plan.keep_fewest(regions, fewer)

    def look_ahead(self, found: Evaluation, plans: Iterable[SplitPlan], extra_compute: float, ram: int) -> None:
        """Compute ahead, in parallel, for `lowest` with this limit and `evaluations` of the lowest plan.

        The latter only if that plan, without repeats, may lead to less `ram`.
        """
        plan = lowest(plans)
        arranged = [(found, each) for each in plan.shared] if plan.promises(found, ram) else []
        self._repeat([(found, plans)], extra_compute, arranged)

    def lowest(
        self, found: Evaluation, plans: Iterable[SplitPlan], extra_compute: float, steps: int = TRIED_STEPS
    ) -> SplitPlan:
        """Return the plan of least bound with up to this fraction of extra arithmetic.

        `steps` as in memory.streaming.rematerialise.
        """
        (plan,) = self.lowest_of([(found, plans)], extra_compute, steps)
        return plan

    def lowest_of(
        self, asked: Sequence[tuple[Evaluation, Iterable[SplitPlan]]], extra_compute: float, steps: int = TRIED_STEPS
    ) -> list[SplitPlan]:
        """Return `lowest` of each candidate and its plans; several are computed at once."""
        found, repeated = [], self._repeat(asked, extra_compute, steps=steps)
        self.share(plan for plans in repeated for plan in plans)
        for (_, plans), repeating in zip(asked, repeated):
            best = min([lowest(plans), *repeating], key=lambda plan: plan.bound)
            found.append(replace(best, refused=any(plan.refused for plan in repeating)))
        return found

    def tried(self, plans: Iterable[SplitPlan], extra_compute: float, steps: int = TRIED_STEPS) -> int:
        """Count the steps on which repeats were tried for these plans."""
        places = {(plan.form, extra_compute, steps) for plan in _different(plans)}
        return sum(self._repeating[place].tried for place in places if place in self._repeating)

    def _repeat(
        self,
        asked: Sequence[tuple[Evaluation, Iterable[SplitPlan]]],
        extra_compute: float,
        then: Iterable[tuple[Evaluation, Arrangement]] = (),
        steps: int = TRIED_STEPS,
    ) -> list[list[SplitPlan]]:
        """Add repeats to the distinct plans of each candidate, within this fraction of extra arithmetic."""
        if extra_compute <= 0:
            return [[] for _ in asked]
        different = [list(_different(plans)) for _, plans in asked]
        repeats = partial(_repeats, extra_compute=extra_compute, steps=steps)
        new: dict[tuple[str, float, int], WorkerTask] = {}
        for (found, _), plans in zip(asked, different):
            for plan in plans:
                place = (plan.form, extra_compute, steps)
                if place not in self._repeating:
                    new.setdefault(place, WorkerTask(specs_of(found.module_passes), partial(repeats, plan=plan)))
        self._repeating |= zip(new, self._evaluator.run(new.values(), then))
        return [
            [_add_repeats(plan, self._repeating[plan.form, extra_compute, steps]) for plan in plans]
            for plans in different
        ]

    def evaluations(self, found: Evaluation, plan: SplitPlan) -> list[Evaluation]:
        """Evaluate a plan after the module passes of `found`, without redundant regions.

        One evaluation for each of the two most promising sharings; no footprint if one fails.
        """
        return [self._evaluator.arranged(found, each) for each in plan.shared]

    def best(self, found: Evaluation, plan: SplitPlan, below: float) -> Evaluation | None:
        """Return the best of `evaluations` in its finest order; None if all fail, or bounds forbid a ram `below`."""
        (best,) = self.best_of(found, [plan], below)
        return best

    def best_of(self, found: Evaluation, plans: Iterable[SplitPlan], below: float) -> list[Evaluation | None]:
        """Return `best` of each plan; several are evaluated at once.

        The sharings of one plan are evaluated one after the other: they have its split kernels in common.
        """
        arranged = [plan.shared if plan.promises(found, below) else [] for plan in plans]
        tried: list[list[Evaluation]] = [[] for _ in arranged]
        for place in range(max(map(len, arranged), default=0)):
            left = [(of_plan, sharings[place]) for of_plan, sharings in zip(tried, arranged) if place < len(sharings)]
            evaluated = self._evaluator.arranged_all((found, each) for _, each in left)
            for (of_plan, _), each in zip(left, evaluated):
                of_plan.append(each)
        return [self._finest(each) for each in tried]

    def _finest(self, tried: Iterable[Evaluation]) -> Evaluation | None:
        worked = sorted((each for each in tried if each.footprint is not None), key=lambda each: each.score)
        return self._evaluator.finest_order(worked) if worked else None

    def rungs(self, plan: SplitPlan, fractions: Iterable[float]) -> list[SplitPlan]:
        """Coarsen a plan towards whole kernels: fewer steps streamed, more rows at a time.

        A fraction of 0.1 allows a tenth of the bytes between the plan and whole kernels on top of the plan's.
        """
        whole = max(Partitioner(plan.repeated, plan.splits, plan.alignment).alone, default=plan.nbytes)
        return self.within(plan, [plan.nbytes + int(fraction * (whole - plan.nbytes)) for fraction in fractions])

    def within(self, plan: SplitPlan, sizes: Iterable[int]) -> list[SplitPlan]:
        """Coarsen a plan as far as each of `sizes` allows, in bytes before memory is shared; drop what exceeds it."""
        return list(_within(Partitioner(plan.repeated, plan.splits, plan.alignment), plan, sizes))

    def growing(self, plan: SplitPlan, parts: Iterable[float], worth: float) -> Iterator[SplitPlan]:
        """Yield plans of the same steps whose results may grow over operands, the least bytes first.

        A part of 0.5 allows half the bytes between the least peak and the plan's on top. None saves less than `worth` of
        the plan's bytes. Libraries of several threads keep results apart: they have none.
        """
        if self._evaluator.target.threads > 1:
            return
        most = int(plan.nbytes * (1 - worth))
        known = KnownForms(plan.alignment)
        least = partition_within(most, plan.repeated, plan.splits, plan.alignment, known, growing=True)
        if least is not None:
            paths = Partitioner(plan.repeated, plan.splits, plan.alignment, known, growing=True)
            yield from _within(paths, plan, (least.nbytes + int(part * (most - least.nbytes)) for part in parts))

    def plans_of(self, founds: Sequence[Evaluation]) -> list[tuple[SplitPlan, ...]]:
        """Return `plans` of each candidate; several are computed at once."""
        alignment = self._evaluator.target.alignment
        orders = tuple(Order(by=name) for name in (*CHEAP_ORDERS, "best"))
        tasks = []
        for each in founds:
            specs = specs_of(each.module_passes)
            tasks += [
                WorkerTask(specs, partial(_order, specs=specs, cut=cut, orders=orders, alignment=alignment))
                for cut in (False, True)
            ]
        ordered = self._evaluator.run(tasks)
        programs = [(*plain, *cut) for plain, cut in zip(ordered[::2], ordered[1::2])]
        plans = [
            [SplitPlan(one.before, one.program, one.splits, one.form, alignment) for one in of_one]
            for of_one in programs
        ]
        return self._partitions.along([(task.specs, of_one) for task, of_one in zip(tasks[::2], plans)])


class _Ordered(NamedTuple):
    """Program in the order `before` ends with, the splits of its kernels, and the key of both."""

    before: Arrangement
    program: Program
    splits: Mapping[str, Splits]
    form: str


def _order(scorer: Scorer, specs: Specs, cut: bool, orders: Sequence[Order], alignment: int) -> list[_Ordered]:
    """Return the program after `specs` in distinct orders, with the bodies of its loops whole, and split.

    With `cut`, nothing if there are no sums to cut.
    """
    cuts: Arrangement = (CutSums(),) if cut else ()
    if cut and scorer.splittable(specs, cuts)[0] == scorer.splittable(specs, ())[0]:
        return []
    found = []
    for bodies in dict.fromkeys(((), body_splits(scorer, specs, alignment))):
        before = (*bodies, *cuts)
        program, splits = scorer.splittable(specs, before)
        different: dict[tuple[int, ...], Order] = {}
        for order in orders:
            different.setdefault(order.numbers(program), order)
        for numbers, order in different.items():
            ordered = program.reordered(numbers)
            found.append(_Ordered((*before, order), ordered, splits, form_key(ordered, splits)))
    return found


def _within(paths: Partitioner, plan: SplitPlan, sizes: Iterable[int]) -> Iterator[SplitPlan]:
    """Yield the distinct plans by other regions of `plan`, as coarse as each of `sizes` allows."""
    given = {plan.regions}
    for most in sizes:
        path = paths.within(most)
        if path.complete:
            path = coarser(paths, replace(path, nbytes=most))
        if path.complete and path.regions and path.regions not in given:
            given.add(path.regions)
            yield replace(plan, regions=path.regions, nbytes=path.nbytes)


def _sharings(_: Scorer, plan: SplitPlan) -> Sharings:
    return plan.sharings


def _reduce(_: Scorer, plan: SplitPlan) -> tuple[Sharings, tuple[StreamedSteps, ...], Sharings]:
    return plan.sharings, plan.fewest.regions, plan.fewest.sharings


def _different(plans: Iterable[SplitPlan]) -> Iterator[SplitPlan]:
    """Yield the best plan with whole sums, and the best with cut sums."""
    plans = tuple(plans)
    for cut in (False, True):
        of_kind = [plan for plan in plans if plan.cut == cut]
        if of_kind:
            yield min(of_kind, key=lambda plan: plan.nbytes)


def _repeats(_: Scorer, plan: SplitPlan, extra_compute: float, steps: int) -> RepeatResult:
    work = int(extra_compute * work_of(plan.program, plan.splits))
    return stored_repeats(plan.form, plan.program, plan.splits, plan.alignment, work, steps)


def _add_repeats(plan: SplitPlan, found: RepeatResult) -> SplitPlan:
    return replace(along(plan, found.path), repeats=found.repeats, refused=found.refused)
