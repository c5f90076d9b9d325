"""Choose the result of a search: lowest after refinement, minimal in length, accepted if lossy."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace

from ...errors import ModelError
from ...passes.sequence.sequence import Sequence
from ..effort import WINNER
from ..evaluate.candidates import Candidate
from ..evaluate.evaluation import Evaluation, Evaluator
from ..strategies.trace import Trace
from .finalists import lowest_finalist
from .growing import GROW, grows_below, try_growth
from .levers import Refinement, refine
from .minimise import Worth, minimise, remove_idle
from .splitting import Splitter

#: states with a searched order if the objective is the sum, which no order changes
ORDERED = 8


@dataclass(frozen=True)
class Accepted:
    """Refined winner of a search.

    `ablation` is the worth of each of its passes, `rejected` the refused lossy sequences with the reason. `complete`:
    no evaluated state can be refined to less.
    """

    refinement: Refinement
    ablation: tuple[Worth, ...]
    rejected: dict[str, str]
    complete: bool


@dataclass(frozen=True)
class _Choice:
    """Best state of one set of lossy passes, with its objective in bytes after refinement; and `Lowest.others`."""

    found: Evaluation
    reached: int
    others: tuple[Evaluation, ...] = ()

    @property
    def rank(self) -> tuple[int, ...]:
        return (self.reached, *self.found.score)


def refine_winner(
    trace: Trace,
    splitter: Splitter,
    refuse: Callable[[Sequence], str],
    extra_compute: float | None,
    rungs: Ordered[float],
    enough: int = 0,
) -> Accepted:
    """Return the best exact or accepted candidate. Raises ModelError if all are refused.

    Growth over operands is tried on a winner above `enough` bytes of ram.
    """
    rejected: dict[str, str] = {}
    failures: dict[str, str] = {}
    evaluator = trace.evaluator

    def refine_one(best: Evaluation) -> Refinement:
        if evaluator.objective != "ram":
            return Refinement(best, (), 0.0, "", {})
        return refine(evaluator, splitter, best, extra_compute, rungs)

    if evaluator.objective == "ram":
        choices, complete = _choose_by_ram(trace, splitter, extra_compute)
    else:
        best = [evaluator.finest_order(each[:ORDERED]) for each in trace.finalists()]
        choices, complete = [_Choice(each, each.cost[0]) for each in best], True

    def refine_choice(choice: _Choice) -> tuple[Refinement, tuple[Worth, ...]]:
        ablation: tuple[Worth, ...] = ()
        if trace.short:
            refinement = refine_one(remove_idle(evaluator, choice.found))
        else:
            refinement, ablation = _shortest(evaluator, choice, refine_one)
        failures.update(refinement.failures)
        by_ram = evaluator.objective == "ram" and refinement.ram > enough
        if extra_compute and by_ram and not evaluator.effort.over(WINNER):
            refinement = try_growth(evaluator, splitter, refinement, extra_compute)
        return refinement, ablation

    for choice in sorted(choices, key=lambda each: each.rank):
        refinement, ablation = refine_choice(choice)
        may_grow = choice.others and refinement.ram > enough and refinement.levers[-1].lever != GROW
        growing = next(
            (
                each
                for each in (choice.others if may_grow else ())
                if grows_below(evaluator, splitter, each, extra_compute or 0.0, refinement.ram)
            ),
            None,
        )
        if growing is not None:
            other = refine_choice(_Choice(growing, 0))
            tried = (*refinement.tried, *other[0].tried)
            refinement, ablation = min((refinement, ablation), other, key=lambda each: each[0].ram)
            refinement = replace(refinement, tried=tried)
        reason = refuse(refinement.best.sequence) if refinement.best.loss else ""
        if not reason:
            return Accepted(replace(refinement, failures=failures), ablation, rejected, complete)
        rejected["; ".join(refinement.best.sequence.specs)] = reason
    raise ModelError(f"No sequence was accepted: {reason}", "Raise the error allowed, or search without lossy passes.")


def _choose_by_ram(trace: Trace, splitter: Splitter, extra_compute: float | None) -> tuple[list[_Choice], bool]:
    """Choose the lowest exact state and, per set of lossy passes, any lower one.

    The flag tells whether no finalist was left out.
    """
    choices: list[_Choice] = []
    complete = True
    exact: int | None = None
    default = trace.evaluator.evaluate(Candidate().passes).key
    for finalists in trace.finalists():
        lowest = lowest_finalist(trace.evaluator, splitter, finalists, extra_compute, default, exact)
        complete = complete and lowest.complete
        if lowest.found is not None:
            choices.append(_Choice(lowest.found, lowest.ram, lowest.others))
            exact = exact if lowest.found.loss else lowest.ram
    return choices, complete


def _shortest(
    evaluator: Evaluator, choice: _Choice, refine_one: Callable[[Evaluation], Refinement]
) -> tuple[Refinement, tuple[Worth, ...]]:
    """Minimise and refine a choice, at the objective that was reached."""
    best, ablation = minimise(evaluator, choice.found)
    refinement = refine_one(best)
    if refinement.best.key != choice.found.key and refinement.best.cost[0] != choice.reached:
        # the search compares its own states: a shorter sequence to another state must reach the same objective
        best, ablation = minimise(evaluator, choice.found, same_state=True)
        refinement = refine_one(best)
    return refinement, ablation
