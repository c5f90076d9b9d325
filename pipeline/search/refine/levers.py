"""What lowers the arena of a winner: the order, sharing, splits, and what is run again; one lever after the other.

    given ─► order ─► share ─► split ─► repeat ─► next: what twice the extra compute would give
                                 └─► rungs: with less and less of the splits, for whom speed matters too
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
from ..evaluate.evaluation import Evaluation, Evaluator
from .lever import Lever
from .split_plan import SplitPlan, lowest
from .splitting import Splitter


@dataclass(frozen=True)
class Refinement:
    """The best candidate with all levers that are allowed, what each of them gave, and what failed.

    `tried` are the candidates behind them, with what they run again. `next` says why the lever `next` was not tried; it is empty where it was.
    """

    best: Evaluation
    levers: tuple[Lever, ...]
    extra_compute: float
    next: str
    failures: dict[str, str]
    tried: tuple[Attempt, ...] = ()

    @property
    def ram(self) -> int:
        """Bytes."""
        return _footprint(self.best).ram


class Attempt(NamedTuple):
    """A candidate with a footprint, by which lever it was reached, and what it runs again, as a fraction."""

    lever: str
    evaluation: Evaluation
    extra_compute: float = 0.0


def refine(
    evaluator: Evaluator, splitter: Splitter, found: Evaluation, max_extra_compute: float | None, rungs: Iterable[float] = ()
) -> Refinement:
    """All levers on the module passes of `found`, whose kernels are whole. None as limit leaves them whole.

    Only a bound keeps a lever from being tried, so no lever missed here could lower the result.

    `rungs` say which ways between whole kernels and splits are tried as well, as in `Splitter.rungs`; they are among
    `tried`, and not the best.
    """
    pulling = _Refiner(evaluator, splitter, found)
    pulling.pull("given", evaluator.arranged(found, (Order(by="given"),)))
    pulling.pull("order", evaluator.arranged(found, (Order(by="best"),)))
    pulling.pull("share", evaluator.finest_order([found]))
    if max_extra_compute is None:
        return pulling.result("kernels were to be left whole, or what was asked for fits already")
    known = splitter.ways(found)
    splitter.look_ahead(found, known, max_extra_compute, pulling.ram)
    pulling.split("split", lowest(known))
    repeating = splitter.lowest(found, known, max_extra_compute)
    pulling.split("repeat", repeating)
    for way in splitter.rungs(lowest(known), rungs):
        pulling.rung(way)
    reason = _no_next(pulling, repeating, max_extra_compute)
    result = pulling.result(reason)
    if not reason:
        pulling.split("next", splitter.lowest(found, known, 2 * max_extra_compute, GLANCED_STEPS))
    return replace(result, levers=tuple(pulling.levers), failures=pulling.failures)


def _no_next(pulling: _Refiner, way: SplitPlan, limit: float) -> str:
    """Why it is no use, or not worth the time, to try twice the limit."""
    if limit == 0:
        return "nothing may be run again"
    if pulling.arena <= way.unavoidable:
        return "the inputs or the outputs of the model alone take as much"
    if not way.refused:
        return f"nothing was left out for want of the {limit:.0%} allowed"
    return ""


class _Refiner:
    """The best so far: what a lever leads to counts where its ram is lower, and what was found if it is no higher."""

    def __init__(self, evaluator: Evaluator, splitter: Splitter, found: Evaluation):
        self.levers: list[Lever] = []
        self.failures: dict[str, str] = {}
        self.tried: list[Attempt] = []
        self.extra_compute = 0.0
        self._evaluator, self._splitter, self._found = evaluator, splitter, found
        self._best: Evaluation | None = None

    def pull(self, lever: str, tried: Evaluation | None, extra_compute: float = 0.0) -> None:
        if tried is not None and tried.footprint is None:
            self.failures["; ".join(specs_of(tried.passes))] = tried.failure
        elif tried is not None:
            assert tried.footprint is not None
            self.tried.append(Attempt(lever, tried, extra_compute))
            least = None if self._best is None else _footprint(self._best).ram
            if least is None or tried.footprint.ram < least or (lever == "share" and tried.footprint.ram == least):
                self._best, self.extra_compute = tried, extra_compute
        if self._best is not None:
            passes = specs_of(each for each in self._best.passes if not isinstance(each, ModulePass))
            self.levers.append(Lever(lever, self.arena, self.extra_compute, passes))

    def split(self, lever: str, way: SplitPlan) -> None:
        best = None
        if way.promises(self._found, self.ram):
            worked = self._worked(way)
            if worked:
                best = self._evaluator.finest_order(worked)
        self.pull(lever, best, way.extra_compute)

    def rung(self, way: SplitPlan) -> None:
        self.tried += [Attempt("rung", each, way.extra_compute) for each in self._worked(way)[:1]]

    def _worked(self, way: SplitPlan) -> list[Evaluation]:
        """What a way leads to, the best first."""
        tried = self._splitter.evaluations(self._found, way)
        worked = [each for each in tried if each.footprint is not None]
        self.failures |= {"; ".join(specs_of(each.passes)): each.failure for each in tried if each not in worked}
        return sorted(worked, key=lambda each: each.score)

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
        return Refinement(
            self._best, tuple(self.levers), self.extra_compute, reason, self.failures, tuple(self.tried)
        )


def _footprint(evaluation: Evaluation) -> Footprint:
    assert evaluation.footprint is not None
    return evaluation.footprint
