"""Evaluate pass sequences: replay, lower, order, plan, account. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Ordered
from dataclasses import dataclass
from itertools import repeat, tee
from typing import Any

from tvm.ir import IRModule

from ...errors import ModelError
from ...memory import Footprint
from ...passes.base import ModulePass, Pass
from ...passes.program.order import Order
from ...passes.sequence.sequence import SPLITTING, Sequence, specs_of
from ...targets import Target
from ..effort import Effort
from .child import OVER_LIMIT, CandidateLimits, Child, ChildDied
from .scoring import Arrangement, EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask
from .workers import InProcess, Workers

#: objectives of a search: bytes of ram on the target, or the literature's sum of all tensors
OBJECTIVES = ("ram", "sum")


#: operators that take as long as one kernel, however they are fused
OPERATORS_A_KERNEL = 8
#: work of a state, of its splits, of its orders and sharings, and of its key, in its kernels
_STATE, _SPLIT, _ORDER, _KEY = 2.0, 1.0, 0.15, 0.05
#: seconds for a task of the refinement that exceeded a candidate's limits
TASK_SECONDS = 900.0
_WITHOUT = "Leave kernels whole: --no-splits, or max-extra-compute: null in params.yaml."


def uncompilable(reason: str) -> ModelError:
    """Return the error of a model that no candidate compiles, for a `reason` of failure."""
    step = (
        "Try a smaller input shape."
        if reason.startswith(OVER_LIMIT)
        else "Replace the operator it names before exporting."
    )
    return ModelError(f"The model cannot be compiled: {reason}", step)


def _work(arrangement: Arrangement) -> float:
    """Return the work of evaluating a state, or an arrangement of it, in its kernels."""
    if not arrangement:
        return _STATE
    return _SPLIT if any(each.name in SPLITTING for each in arrangement) else _ORDER


@dataclass(frozen=True)
class Evaluation:
    """Candidate with footprint, or the reason of its failure.

    `passes` are its module passes, then the program passes found for it. `key` is the key of its state. `least` is a
    lower bound on its ram in bytes, by any refinement.
    """

    passes: tuple[Pass, ...]
    key: int
    footprint: Footprint | None
    failure: str = ""
    objective: str = "ram"
    least: int = 0

    @property
    def result(self) -> Footprint:
        """Return the footprint of a candidate that did not fail."""
        assert self.footprint is not None
        return self.footprint

    @property
    def cost(self) -> tuple[int, int, int]:
        """Return the cost, smaller is better: the objective first, then tie-breakers."""
        found = self.result
        first = (found.ram, found.weights) if self.objective == "ram" else (found.sum, found.ram)
        return (*first, found.kernels)

    @property
    def score(self) -> tuple[int, int, int, int]:
        """Return the cost, then the length of the sequence."""
        return (*self.cost, len(self.passes))

    @property
    def loss(self) -> tuple[str, ...]:
        """Return the specs of its lossy passes."""
        return tuple(each.spec for each in self.passes if each.lossy)

    @property
    def module_passes(self) -> tuple[ModulePass, ...]:
        return tuple(each for each in self.passes if isinstance(each, ModulePass))

    @property
    def arrangement(self) -> Arrangement:
        return tuple(each for each in self.passes if not isinstance(each, ModulePass))

    @property
    def sequence(self) -> Sequence:
        return Sequence(self.passes)


class Evaluator:
    """Evaluate sequences on one graph for one target by `workers`; count states, record failures.

    Results, counts and failures do not depend on the workers: outcomes are taken in the order of the candidates, and an
    outcome computed ahead but never taken is not counted.
    """

    def __init__(
        self,
        module: IRModule,
        name: str,
        target: Target,
        inputs: Ordered[str],
        outputs: Ordered[str],
        objective: str = "ram",
        workers: Callable[[Scorer], Workers] = InProcess,
        keep: bool = True,
    ):
        self.target = target
        self.objective = objective
        self.failures: dict[str, str] = {}
        #: bindings of the graph
        self.operators = sum(len(block.bindings) for block in module["main"].body.blocks)
        self.scorer = Scorer(module, name, target, inputs, outputs, keep)
        self._workers = workers(self.scorer)
        self.effort = Effort(elsewhere=lambda: self._workers.seconds)
        #: kernels of the first state, or the equivalent of its operators, if more: the work of a state
        self._kernels = max(1, self.operators // OPERATORS_A_KERNEL)
        self._counted: set[object] = set()
        #: called after each candidate with their number so far, of any phase, and the least ram of all (bytes)
        self.watch: Callable[[int, int], None] = lambda tried, least: None
        self._tried, self._least = 0, 0
        self._seen: set[tuple[Arrangement, Arrangement]] = set()

    @property
    def count(self) -> int:
        """Count the states evaluated, and the sequences that killed a worker."""
        return len(self._counted)

    def evaluate(self, passes: Ordered[Pass], below: int | None = None) -> Evaluation:
        """Evaluate module passes in the best of the cheap orders.

        Without a footprint if their floor rules out an arena `below` so many bytes, which does not count.
        """
        return next(self.evaluate_all([passes], [below]))

    def evaluate_all(
        self, sequences: Iterable[Ordered[Pass]], below: Iterable[int | None] = repeat(None)
    ) -> Iterator[Evaluation]:
        """Evaluate each sequence, in order; computes ahead, so none may depend on an earlier outcome."""
        return map(self._evaluation, *self._outcomes(sequences, True, below))

    def key(self, passes: Ordered[Pass]) -> int | None:
        """Return the key of the state after `passes`, None if one fails; not counted."""
        return next(self.keys([passes]))

    def keys(self, sequences: Iterable[Ordered[Pass]]) -> Iterator[int | None]:
        """Yield the key of each sequence, in order; computes ahead."""
        return map(self._key, *self._outcomes(sequences, False))

    def with_order(self, evaluation: Evaluation, order: Order) -> Evaluation:
        """Reorder a candidate with its sharing kept; return it unchanged if that fails."""
        found = self.arranged(evaluation, (*evaluation.arrangement[:-1], order))
        return evaluation if found.footprint is None else found

    def arranged(self, evaluation: Evaluation, arrangement: Arrangement) -> Evaluation:
        """Evaluate other program passes after the same module passes; no footprint if one fails."""
        return self.arranged_all([(evaluation, arrangement)])[0]

    def arranged_all(
        self, wanted: Iterable[tuple[Evaluation, Arrangement]], below: int | None = None
    ) -> list[Evaluation]:
        """Evaluate arrangements in order, several at once.

        Without a footprint if the bound rules out a ram `below` so many bytes.
        """
        asked = list(wanted)
        requests = [
            EvaluationRequest(specs_of(each.module_passes), True, arrangement, below) for each, arrangement in asked
        ]
        outcomes = self._workers.outcomes(requests)
        return [
            self._evaluation(each.module_passes, outcome, arrangement, each.least)
            for (each, arrangement), outcome in zip(asked, outcomes)
        ]

    def run(self, errands: Iterable[WorkerTask], then: Iterable[tuple[Evaluation, Arrangement]] = ()) -> list[Any]:
        """Return the result of each task; idle workers meanwhile evaluate the arrangements of `then`."""
        tasks = list(errands)
        ahead = [EvaluationRequest(specs_of(each.module_passes), order=arrangement) for each, arrangement in then]
        self.effort.add(self._kernels * sum(each.work for each in tasks))
        found = list(self._workers.outcomes([*tasks, *ahead]))
        return [self._retry(task, each.failure) if each.died else each.result for task, each in zip(tasks, found)]

    def attempt(self, tasks: Iterable[WorkerTask]) -> list[Any]:
        """Return the result of each task; None for one that exceeded a candidate's limits."""
        asked = list(tasks)
        self.effort.add(self._kernels * sum(each.work for each in asked))
        return [None if each.died else each.result for each in self._workers.outcomes(asked)]

    def _retry(self, task: WorkerTask, failure: str) -> object:
        """Run a task again with more time, after it exceeded a candidate's limits. Raises ModelError."""
        child = Child(self.scorer, CandidateLimits(TASK_SECONDS))
        child.ask(task, frozenset())
        try:
            outcome = child.answer()
        except ChildDied as death:
            raise ModelError(f"The search for splits failed: {failure}, then {death.reason}.", _WITHOUT) from None
        child.end()
        if outcome.died:
            raise ModelError(f"The search for splits failed: {outcome.failure}.", _WITHOUT)
        return outcome.result

    def finest_order(self, finalists: Ordered[Evaluation]) -> Evaluation:
        """Search the best order of each finalist not ruled out by its floor; return the best."""
        best = finalists[0]
        for each in finalists:
            found = each.result
            least = found.ram - found.arena + found.floor
            if found.arena > found.floor and least <= best.result.ram:
                best = min(best, self.with_order(each, Order(by="best")), key=lambda one: one.score)
        return best

    def close(self) -> None:
        self._workers.close()

    def _outcomes(
        self, sequences: Iterable[Ordered[Pass]], score: bool, below: Iterable[int | None] = repeat(None)
    ) -> tuple[Iterator[tuple[Pass, ...]], Iterator[EvaluationOutcome]]:
        own, ahead = tee(map(tuple, sequences))
        requests = (EvaluationRequest(specs_of(passes), score, (), least) for passes, least in zip(ahead, below))
        return own, self._workers.outcomes(requests)

    def _key(self, passes: tuple[Pass, ...], outcome: EvaluationOutcome, work: float = _KEY) -> int | None:
        self.effort.add(self._kernels * work)
        if outcome.failure:
            self.failures["; ".join(specs_of(passes))] = outcome.failure
            return None
        return outcome.key

    def _evaluation(
        self, passes: tuple[Pass, ...], outcome: EvaluationOutcome, arrangement: Arrangement = (), least: int = 0
    ) -> Evaluation:
        if outcome.died or (outcome.key is not None and not outcome.hopeless):
            self._counted.add(passes if outcome.key is None else outcome.key)
        self._tried += 1
        new = (passes, arrangement) not in self._seen
        self._seen.add((passes, arrangement))
        if outcome.footprint is not None:
            self._kernels = max(self._kernels, outcome.footprint.kernels) if self._tried == 1 else self._kernels
            self._least = min(self._least or outcome.footprint.ram, outcome.footprint.ram)
        self.watch(self._tried, self._least)
        key = self._key((*passes, *arrangement), outcome, _work(arrangement) if new else 0.0)
        if key is None or not outcome.order:
            return Evaluation((*passes, *arrangement), 0, None, outcome.failure)
        return Evaluation((*passes, *outcome.order), key, outcome.footprint, "", self.objective, outcome.least or least)
