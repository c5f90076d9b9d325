"""Interface of search strategies: limits, trace of evaluated states, protocol."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import repeat, tee
from typing import Protocol

from ...memory.footprint import Budget
from ...passes.base import Pass
from ..effort import SEARCH, SECONDS
from ..evaluate.candidates import Candidate, actions
from ..evaluate.evaluation import OPERATORS_A_KERNEL, Evaluation, Evaluator
from ..knowledge.knowledge import Knowledge

#: kernels of all states evaluated, if no number of states is given: half a minute's work on two cores …
KERNELS = 3000
#: … in at least so many states, which begin with the coreset of other models, and at most so many
AT_LEAST, AT_MOST = 12, 256


@dataclass(frozen=True)
class Limits:
    """Limits of a search.

    `evaluations` limits the states evaluated (None: by the size of the graph, see KERNELS). `seconds` of processor time
    limit the effort, the same on every machine: see `Effort`. `goal` is a sufficient footprint (its `flash` is compared
    with the weights); None searches the minimum.
    """

    evaluations: int | None = None
    seconds: float = SECONDS
    goal: Budget | None = None


@dataclass
class Trace:
    """Record the states of a search and the best so far; `finished` tells when to stop."""

    limits: Limits
    evaluator: Evaluator
    #: records of other models
    knowledge: Knowledge = Knowledge()
    #: the graph passes a strategy may use
    passes: tuple[Pass, ...] = field(default_factory=actions)
    best: Evaluation | None = None
    #: by set of lossy passes and by key: each state with the best sequence that leads to it
    states: dict[tuple[str, ...], dict[int, Evaluation]] = field(default_factory=dict)
    best_candidate: Candidate = Candidate()
    trajectory: list[dict[str, int]] = field(default_factory=list)
    #: set by a strategy that has evaluated every state in reach of its actions
    closed: bool = False
    #: set by a strategy of short sequences: only idle passes are removed, and the worth of the others is not measured
    short: bool = False
    #: set by a quick strategy: states to refine, at most: the first one and the best others
    few: int | None = None
    #: family of the graph, if the strategy asked for it; see knowledge/family.py
    family: str = ""
    #: kernels of the first state, or the equivalent of its operators, if more
    _kernels: int = 0

    def evaluate(self, candidate: Candidate) -> bool:
        """Evaluate `candidate`; return whether it is the best so far. A failure is only recorded."""
        return self._consider_as(candidate, self.evaluator.evaluate(candidate.passes))

    def evaluate_all(self, candidates: Iterable[Candidate], below: Iterable[int | None] = repeat(None)) -> bool:
        """Evaluate candidates in order; return whether the limits are reached.

        A candidate is skipped if its floor rules out an arena `below` so many bytes. Candidates are evaluated ahead of
        time, so none may depend on the outcome of another. Results are the same as one by one.
        """
        if self.finished:
            return True
        own, ahead = tee(candidates)
        for candidate, found in zip(own, self.evaluator.evaluate_all((each.passes for each in ahead), below)):
            self._consider_as(candidate, found)
            if self.finished:
                return True
        return False

    def _consider_as(self, candidate: Candidate, found: Evaluation) -> bool:
        better = self.consider(found)
        if better:
            self.best_candidate = candidate
        return better

    def consider(self, candidate: Evaluation) -> bool:
        """Record an evaluation; return whether it is the best so far."""
        if candidate.footprint is None:
            return False
        self._kernels = self._kernels or max(
            candidate.footprint.kernels, self.evaluator.operators // OPERATORS_A_KERNEL
        )
        better = self.best is None or candidate.score < self.best.score
        if better:
            self.best = candidate
            self.trajectory.append({"evaluation": self.evaluator.count, "ram": candidate.footprint.ram})
        self._keep(candidate)
        return better

    def _keep(self, candidate: Evaluation) -> None:
        states = self.states.setdefault(candidate.loss, {})
        known = states.get(candidate.key)
        if known is None or candidate.score < known.score:
            states[candidate.key] = candidate

    def finalists(self) -> list[list[Evaluation]]:
        """Return the states of each set of lossy passes, best first; exact states, then sets by best state."""
        groups = [self._fewer(sorted(states.values(), key=lambda each: each.score)) for states in self.states.values()]
        return sorted(groups, key=lambda group: (bool(group[0].loss), group[0].score))

    def _fewer(self, states: list[Evaluation]) -> list[Evaluation]:
        """Keep the first state of the search and the best others, `few` at most."""
        if self.few is None or len(states) <= self.few:
            return states
        first = next(iter(next(iter(self.states.values()))))
        return [each for place, each in enumerate(states) if place < self.few - 1 or each.key == first]

    @property
    def finished(self) -> bool:
        """Return whether the limits are reached or the goal is met."""
        return self.evaluator.count >= self._most or self.evaluator.effort.over(SEARCH) or self.fits

    def may_end_before(self, candidates: int) -> bool:
        """Return whether the search may end within so many candidates, so that their order matters."""
        return self.limits.goal is not None or self.evaluator.count + candidates > self._most

    @property
    def left(self) -> int:
        """Return how many states may still be evaluated; one is, even beyond the limit."""
        return max(1, self._most - self.evaluator.count)

    @property
    def _most(self) -> int:
        """Return the limit of evaluations."""
        if self.limits.evaluations is not None:
            return self.limits.evaluations
        return min(AT_MOST, max(AT_LEAST, KERNELS // max(1, self._kernels)))

    @property
    def fits(self) -> bool:
        """Return whether the best so far meets the goal."""
        if self.limits.goal is None or self.best is None or self.best.footprint is None:
            return False
        found, goal = self.best.footprint, self.limits.goal
        return found.ram <= (goal.ram or found.ram) and found.weights <= (goal.flash or found.weights)


class Strategy(Protocol):
    """Strategy: evaluates candidates through `trace` until `trace.finished`."""

    def __call__(self, trace: Trace, seed: int) -> None: ...
