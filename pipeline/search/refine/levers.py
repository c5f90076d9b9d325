"""Refine the arena of a winner step by step: order, sharing, splits, rematerialisation.

given ─► order ─► share ─► split ─► repeat ─► next: with twice the extra compute
                             └─► rungs: with coarser and coarser splits, if latency matters too
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...memory import Footprint
from ...memory.streaming.rematerialise import GLANCED_STEPS
from ...passes.base import ModulePass
from ...passes.program.order import Order
from ...passes.sequence.sequence import specs_of
from ..effort import WINNER
from ..evaluate.evaluation import Evaluation, Evaluator
from .lever import Lever
from .split_plan import SplitPlan, lowest
from .splitting import Splitter


@dataclass(frozen=True)
class Refinement:
    """Best candidate after all allowed steps.

    `levers` are the steps in order, `failures` the reasons of failed sequences by their specs. `tried` are the
    candidates of all steps. `next` is the reason why the step `next` was not tried; empty if it was.
    """

    best: Evaluation
    levers: tuple[Lever, ...]
    extra_compute: float
    next: str
    failures: dict[str, str]
    tried: tuple[Attempt, ...] = ()

    @property
    def ram(self) -> int:
        """Return the ram in bytes."""
        return _footprint(self.best).ram

    def taken(self, attempt: Attempt) -> Refinement:
        """Return the refinement with an attempt of lower ram."""
        lever = lever_of(attempt.lever, attempt.evaluation, attempt.extra_compute)
        return replace(
            self,
            best=attempt.evaluation,
            levers=(*self.levers, lever),
            extra_compute=attempt.extra_compute,
            tried=(*self.tried, attempt),
        )


class Attempt(NamedTuple):
    """Candidate with a footprint, its refinement step, and its recomputation as a fraction."""

    lever: str
    evaluation: Evaluation
    extra_compute: float = 0.0


def lever_of(lever: str, best: Evaluation, extra_compute: float) -> Lever:
    """Return the refinement step that left `best` as the best candidate."""
    passes = specs_of(each for each in best.passes if not isinstance(each, ModulePass))
    return Lever(lever, _footprint(best).arena, extra_compute, passes)


def refine(
    evaluator: Evaluator,
    splitter: Splitter,
    found: Evaluation,
    max_extra_compute: float | None,
    rungs: Iterable[float] = (),
) -> Refinement:
    """Refine `found`, whose kernels are whole, by all steps; a limit of None leaves kernels whole.

    Only a bound keeps a step from being tried, so no step left out could lower the result. `rungs` add candidates
    between whole kernels and splits, as in `Splitter.rungs`; they are among `tried`, never `best`.
    """
    refiner = _Refiner(evaluator, splitter, found)
    given, ordered = evaluator.arranged_all((found, (Order(by=each),)) for each in ("given", "best"))
    refiner.take("given", given)
    refiner.take("order", ordered)
    refiner.take("share", evaluator.finest_order([found]))
    if max_extra_compute is None:
        return refiner.result("splits are off, or the budget is met already")
    known = splitter.plans(found)
    if refiner.exhausted:
        refiner.split("split", lowest(known))
        return refiner.result("the effort was used up")
    splitter.look_ahead(found, known, max_extra_compute, refiner.ram)
    refiner.split("split", lowest(known))
    repeating = splitter.lowest(found, known, max_extra_compute)
    refiner.split("repeat", repeating)
    for plan in splitter.rungs(lowest(known), rungs):
        refiner.rung(plan)
    reason = _no_next(refiner, repeating, max_extra_compute)
    result = refiner.result(reason)
    if not reason:
        refiner.split("next", splitter.lowest(found, known, 2 * max_extra_compute, GLANCED_STEPS))
    return replace(result, levers=tuple(refiner.levers), failures=refiner.failures)


def _no_next(refiner: _Refiner, plan: SplitPlan, limit: float) -> str:
    """Return why twice the limit is not tried; empty if it is worth trying."""
    if limit == 0:
        return "nothing may be run again"
    if refiner.exhausted:
        return "the effort was used up"
    if refiner.arena <= plan.unavoidable:
        return "the inputs or the outputs of the model alone take as much"
    if not plan.refused:
        return f"the limit of {limit:.0%} extra compute excluded nothing"
    return ""


class _Refiner:
    """Apply steps, keeping the best so far.

    A step counts if its ram is lower; the step `share`, which is the search's own candidate, also if it is equal.
    """

    def __init__(self, evaluator: Evaluator, splitter: Splitter, found: Evaluation):
        self.levers: list[Lever] = []
        self.failures: dict[str, str] = {}
        self.tried: list[Attempt] = []
        self.extra_compute = 0.0
        self._evaluator, self._splitter, self._found = evaluator, splitter, found
        self._best: Evaluation | None = None

    def take(self, lever: str, tried: Evaluation | None, extra_compute: float = 0.0) -> None:
        if tried is not None and tried.footprint is None:
            self.failures["; ".join(specs_of(tried.passes))] = tried.failure
        elif tried is not None:
            assert tried.footprint is not None
            self.tried.append(Attempt(lever, tried, extra_compute))
            least = None if self._best is None else _footprint(self._best).ram
            if least is None or tried.footprint.ram < least or (lever == "share" and tried.footprint.ram == least):
                self._best, self.extra_compute = tried, extra_compute
        if self._best is not None:
            self.levers.append(lever_of(lever, self._best, self.extra_compute))

    def split(self, lever: str, plan: SplitPlan) -> None:
        best = None
        if plan.promises(self._found, self.ram):
            worked = self._evaluate(plan)
            if worked:
                best = self._evaluator.finest_order(worked)
        self.take(lever, best, plan.extra_compute)

    def rung(self, plan: SplitPlan) -> None:
        self.tried += [Attempt("rung", each, plan.extra_compute) for each in self._evaluate(plan)[:1]]

    def _evaluate(self, plan: SplitPlan) -> list[Evaluation]:
        """Evaluate a split plan; return the candidates that succeed, best first."""
        tried = self._splitter.evaluations(self._found, plan)
        worked = [each for each in tried if each.footprint is not None]
        self.failures |= {"; ".join(specs_of(each.passes)): each.failure for each in tried if each not in worked}
        return sorted(worked, key=lambda each: each.score)

    @property
    def exhausted(self) -> bool:
        return self._evaluator.effort.over(WINNER)

    @property
    def arena(self) -> int:
        assert self._best is not None
        return _footprint(self._best).arena

    @property
    def ram(self) -> int:
        assert self._best is not None
        return _footprint(self._best).ram

    def result(self, reason: str) -> Refinement:
        assert self._best is not None
        return Refinement(self._best, tuple(self.levers), self.extra_compute, reason, self.failures, tuple(self.tried))


def _footprint(evaluation: Evaluation) -> Footprint:
    assert evaluation.footprint is not None
    return evaluation.footprint
