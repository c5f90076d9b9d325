"""Find the finalist of lowest ram after refinement, without refining each fully.

    split ──► reorder ──► repeat

Branch and bound: a finalist stays as long as its bound is below the best so far, since a state that is bad with whole
kernels may be the lowest with splits. Only bounds rule a finalist out, or the effort allowed, which clears `complete`.
Splits that only equal the best compete too: fewer weights and kernels grow better, and take less time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from ...passes.program.order import Order
from ..effort import FINALISTS
from ..evaluate.evaluation import Evaluation, Evaluator
from ..evaluate.scoring import Arrangement
from .split_plan import SplitPlan, lowest, promising
from .splitting import Splitter

#: finalists refined at once; the same for any number of workers, and so the result
WAVE = 4
#: kernels of split finalists after which no wave is begun; or one in PART of all kernels that the search evaluated, so
#: that the time grows by a fraction of the search's
KERNELS, PART = 300, 4
#: steps on which repeats are tried, for each of these kernels
STEPS = 10
#: finalists besides the lowest whose results may be tried to grow
OTHERS = 3

_Item = TypeVar("_Item")
#: a finalist and its split plans
_Looked = tuple[Evaluation, tuple[SplitPlan, ...]]


@dataclass(frozen=True)
class Lowest:
    """Lowest finalist, with whole kernels, and its ram in bytes after refinement; None if none is low enough.

    `complete`: only finalists whose bound is no lower were left out. `others` are those of the least split plans besides it:
    their results may grow over operands where its own cannot.
    """

    found: Evaluation | None
    ram: int
    complete: bool
    others: tuple[Evaluation, ...] = ()


def lowest_finalist(
    evaluator: Evaluator,
    splitter: Splitter,
    finalists: Sequence[Evaluation],
    extra_compute: float | None,
    first: int | None = None,
    below: int | None = None,
) -> Lowest:
    """Find the finalist of lowest ram after refinement, if `below` so many bytes.

    `finalists` are the states in the order of their score, `first` is the key of a state never left out for effort.
    `extra_compute` as in `levers.refine`: None leaves kernels whole.
    """
    race = _Race(evaluator, splitter, finalists, below)
    for each in finalists:
        race.take(each, [each])
    if extra_compute is None:
        race.reorder(finalists)
        return race.lowest()
    # the cheap steps first: they lower the incumbent that the later ones are bounded by
    looked_at = race.split(sorted(finalists, key=lambda each: each.key != first))
    race.reorder(finalists)
    race.repeat(sorted(looked_at, key=lambda one: one[0].key != first), extra_compute)
    return replace(race.lowest(), others=race.others(looked_at, extra_compute))


class _Race:
    """Branch and bound over finalists, keeping the best so far."""

    def __init__(self, evaluator: Evaluator, splitter: Splitter, finalists: Sequence[Evaluation], below: int | None):
        self._evaluator, self._splitter, self._below = evaluator, splitter, below
        self._best: tuple[Evaluation, Evaluation] | None = None
        self._left_out: list[Evaluation] = []
        self._kernels = max(KERNELS, sum(each.result.kernels for each in finalists) // PART)

    def take(self, finalist: Evaluation, tried: Iterable[Evaluation]) -> None:
        """Record refinements of a finalist, if better than the best so far."""
        for each in tried:
            if each.footprint is None:
                continue
            if each.footprint.ram < self.limit or (self._best is not None and each.score < self._best[1].score):
                self._best = finalist, each

    @property
    def limit(self) -> float:
        """Return the ram in bytes to get below."""
        if self._best is not None:
            return self._best[1].result.ram
        return math.inf if self._below is None else self._below

    @property
    def reach(self) -> float:
        """Return the ram in bytes to get below, or to equal with fewer weights or kernels."""
        return self.limit if self._best is None else self.limit + 1

    def lowest(self) -> Lowest:
        complete = not self._going(self._left_out, self.limit)
        if self._best is None:
            return Lowest(None, 0, complete)
        return Lowest(self._best[0], self._best[1].result.ram, complete)

    def reorder(self, finalists: Sequence[Evaluation]) -> None:
        """Reorder whole kernels by search, with their sharing and without any."""
        for wave in _waves(finalists):
            if self._evaluator.effort.over(FINALISTS):
                self._left_out += wave
                continue
            wanted = [(each, order) for each in wave for order in self._orders(each)]
            limit = None if math.isinf(self.limit) else int(self.limit)
            for (each, _), tried in zip(wanted, self._evaluator.arranged_all(wanted, limit)):
                self.take(each, [tried])

    def _orders(self, finalist: Evaluation) -> Iterator[Arrangement]:
        whole = finalist.result
        *sharing, _ = finalist.arrangement
        if whole.arena > whole.floor and whole.ram - whole.arena + whole.floor < self.limit:
            yield (*sharing, Order(by="best"))
        if sharing and finalist.least + whole.workspace < self.limit:
            yield (Order(by="best"),)

    def split(self, finalists: Sequence[Evaluation]) -> list[_Looked]:
        """Split finalists within the effort allowed, and reorder them; return each with its split plans."""
        looked_at: list[_Looked] = []
        for wave in _waves(finalists):
            going = self._going(wave, self.reach)
            enough = sum(each.result.kernels for each, _ in looked_at) >= self._kernels
            if looked_at and (enough or self._evaluator.effort.over(FINALISTS)):
                self._left_out += going
                continue
            found = sorted(zip(going, self._splitter.plans_of(going)), key=_estimate_ram)
            self._splitter.share(plan for _, plans in found for plan in promising(plans))
            self._splitter.reduce(lowest(plans) for _, plans in found)
            for each, plans in found:
                self._try(each, lowest(plans), self.reach)
            self.reorder(going)
            looked_at += found
        return sorted(looked_at, key=_estimate_ram)

    def repeat(self, looked_at: Sequence[_Looked], extra_compute: float) -> None:
        """Split finalists with rematerialised steps, within the effort allowed."""
        steps = 0
        for wave in _waves(looked_at):
            going = self._going([each for each, _ in wave], self.limit)
            if steps >= STEPS * self._kernels or self._evaluator.effort.over(FINALISTS):
                self._left_out += going
                continue
            asked = [(each, plans) for each, plans in wave if each in going]
            for (each, plans), plan in zip(asked, self._splitter.lowest_of(asked, extra_compute)):
                steps += self._splitter.tried(plans, extra_compute)
                self._try(each, plan, self.limit)

    def others(self, looked_at: Sequence[_Looked], extra_compute: float) -> tuple[Evaluation, ...]:
        """Return the finalists of the least split plans besides the best so far."""
        if self._best is None:
            return ()
        asked = [(each, plans) for each, plans in looked_at if each is not self._best[0] and each.least < self.limit]
        plans = self._splitter.lowest_of(asked, extra_compute)
        found = [(plan.bound + each.result.ram - each.result.arena, each) for (each, _), plan in zip(asked, plans)]
        return tuple(each for _, each in sorted(found, key=lambda one: one[0])[:OTHERS])

    def _going(self, finalists: Iterable[Evaluation], below: float) -> list[Evaluation]:
        """Filter finalists by bound: it must allow less than so many bytes."""
        return [each for each in finalists if each.least < below]

    def _try(self, finalist: Evaluation, plan: SplitPlan, below: float) -> None:
        best = self._splitter.best(finalist, plan, below)
        if best is not None:
            self.take(finalist, [best])


def _estimate_ram(looked_at: _Looked) -> int:
    """Estimate the ram of a finalist with splits, before memory is shared."""
    finalist, plans = looked_at
    whole = finalist.result
    return min(plan.nbytes for plan in plans) + whole.ram - whole.arena


def _waves(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    waiting = iter(items)
    while wave := list(islice(waiting, WAVE)):
        yield wave
