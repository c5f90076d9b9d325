"""What a sequence of passes is worth: replay it, lower, order, plan, add up. Nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Ordered
from dataclasses import dataclass
from itertools import repeat, tee

from tvm.ir import IRModule

from ...errors import ModelError
from ...memory import Footprint
from ...passes.base import ModulePass, Pass
from ...passes.program.order import Order
from ...passes.sequence.sequence import Sequence, specs_of
from ...targets import Target
from .child import CandidateLimits, Child, ChildDied
from .scoring import Arrangement, EvaluationOutcome, EvaluationRequest, Scorer, WorkerTask
from .workers import InProcess, Workers

#: what a search lowers: bytes of ram on the target, or the literature's sum of all tensors
OBJECTIVES = ("ram", "sum")


#: seconds for what follows a search, where a candidate's limits were too low for it
ERRAND_SECONDS = 900.0
_WITHOUT = "Leave kernels whole: --no-splits, or max-extra-compute: null in params.yaml."


@dataclass(frozen=True)
class Evaluation:
    """A candidate: its module passes, the order found for it, and its footprint; or why there is none.

    `least` is a bound on its ram: no lever goes below, in bytes.
    """

    passes: tuple[Pass, ...]
    key: int
    footprint: Footprint | None
    failure: str = ""
    objective: str = "ram"
    least: int = 0

    @property
    def cost(self) -> tuple[int, int, int]:
        """Smaller is better: the objective first (of OBJECTIVES), then the others."""
        assert self.footprint is not None
        ram, total = self.footprint.ram, self.footprint.sum
        first = (ram, self.footprint.weights) if self.objective == "ram" else (total, ram)
        return (*first, self.footprint.kernels)

    @property
    def score(self) -> tuple[int, int, int, int]:
        """The cost, then the length of the sequence."""
        return (*self.cost, len(self.passes))

    @property
    def loss(self) -> tuple[str, ...]:
        """The lossy passes among them."""
        return tuple(each.spec for each in self.passes if each.lossy)

    @property
    def module_passes(self) -> tuple[ModulePass, ...]:
        return tuple(each for each in self.passes if isinstance(each, ModulePass))

    @property
    def sequence(self) -> Sequence:
        return Sequence(self.passes)


class Evaluator:
    """Evaluates sequences on one graph for one target, by `workers`; counts the states and remembers the failures.

    What it returns, counts and remembers does not depend on the workers: outcomes are taken in the order of the
    candidates, and one that was worked out ahead but never taken counts for nothing.
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
    ):
        self.target = target
        self.objective = objective
        self.failures: dict[str, str] = {}
        #: bindings of the graph
        self.operators = sum(len(block.bindings) for block in module["main"].body.blocks)
        self.scorer = Scorer(module, name, target, inputs, outputs)
        self._workers = workers(self.scorer)
        self._counted: set[object] = set()
        #: called after each candidate with how many there were so far, whatever for, and the least ram of all (bytes)
        self.watch: Callable[[int, int], None] = lambda tried, least: None
        self._tried, self._least = 0, 0

    @property
    def count(self) -> int:
        """The states evaluated, and the sequences that cost a worker its life."""
        return len(self._counted)

    def evaluate(self, passes: Ordered[Pass], below: int | None = None) -> Evaluation:
        """The footprint of the module passes, run in the best of the orders that cost next to nothing; none where
        their floor says that no arena has fewer bytes than `below`, which is no evaluation."""
        return next(self.evaluate_all([passes], [below]))

    def evaluate_all(
        self, sequences: Iterable[Ordered[Pass]], below: Iterable[int | None] = repeat(None)
    ) -> Iterator[Evaluation]:
        """`evaluate` of each, in order; the next ones are worked on meanwhile, which must not depend on the last."""
        return map(self._evaluation, *self._outcomes(sequences, True, below))

    def key(self, passes: Ordered[Pass]) -> int | None:
        """The key of the state that `passes` lead to, None where one fails; it counts for nothing."""
        return next(self.keys([passes]))

    def keys(self, sequences: Iterable[Ordered[Pass]]) -> Iterator[int | None]:
        """`key` of each, in order; the next ones are worked on meanwhile."""
        return map(self._key, *self._outcomes(sequences, False))

    def with_order(self, evaluation: Evaluation, order: Order) -> Evaluation:
        """The same candidate, sharing the same memory, in another order, or as it was where that fails."""
        arrangement = tuple(each for each in evaluation.passes if not isinstance(each, ModulePass))
        found = self.arranged(evaluation, (*arrangement[:-1], order))
        return evaluation if found.footprint is None else found

    def arranged(self, evaluation: Evaluation, arrangement: Arrangement) -> Evaluation:
        """The same module passes, then others on the program; without a footprint where one fails."""
        return self.arranged_all([(evaluation, arrangement)])[0]

    def arranged_all(
        self, wanted: Iterable[tuple[Evaluation, Arrangement]], below: int | None = None
    ) -> list[Evaluation]:
        """`arranged` of each, in order; several are worked on at once. None has a footprint whose bound says that its ram
        is not `below` so many bytes."""
        asked = list(wanted)
        requests = [EvaluationRequest(specs_of(each.module_passes), True, arrangement, below) for each, arrangement in asked]
        outcomes = self._workers.outcomes(requests)
        return [
            self._evaluation(each.module_passes, outcome, arrangement, each.least)
            for (each, arrangement), outcome in zip(asked, outcomes)
        ]

    def run(self, errands: Iterable[WorkerTask], then: Iterable[tuple[Evaluation, Arrangement]] = ()) -> list[object]:
        """What each errand comes to. Workers that are free meanwhile begin with what is to be `arranged` then."""
        errands = list(errands)
        ahead = [EvaluationRequest(specs_of(each.module_passes), order=arrangement) for each, arrangement in then]
        found = list(self._workers.outcomes([*errands, *ahead]))
        return [self._again(errand, each.failure) if each.died else each.result for errand, each in zip(errands, found)]

    def _again(self, errand: WorkerTask, failure: str) -> object:
        """What an errand comes to that took more than a candidate may, in more time. Raises ModelError."""
        child = Child(self.scorer, CandidateLimits(ERRAND_SECONDS))
        child.ask(errand, frozenset())
        try:
            outcome = child.answer()
        except ChildDied as death:
            raise ModelError(f"Looking for splits was given up: {failure}, then {death.reason}.", _WITHOUT) from None
        child.end()
        if outcome.died:
            raise ModelError(f"Looking for splits was given up: {outcome.failure}.", _WITHOUT)
        return outcome.result

    def finest_order(self, finalists: Ordered[Evaluation]) -> Evaluation:
        """The best of the finalists, each in the best order a search finds, unless its floor rules it out."""
        best = finalists[0]
        for each in finalists:
            assert each.footprint is not None and best.footprint is not None
            least = each.footprint.ram - each.footprint.arena + each.footprint.floor
            if each.footprint.arena > each.footprint.floor and least <= best.footprint.ram:
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

    def _key(self, passes: tuple[Pass, ...], outcome: EvaluationOutcome) -> int | None:
        if outcome.failure:
            self.failures["; ".join(specs_of(passes))] = outcome.failure
            return None
        return outcome.key

    def _evaluation(
        self, passes: tuple[Pass, ...], outcome: EvaluationOutcome, arrangement: Arrangement = (), least: int = 0
    ) -> Evaluation:
        if outcome.died or outcome.key is not None and not outcome.hopeless:
            self._counted.add(passes if outcome.key is None else outcome.key)
        self._tried += 1
        if outcome.footprint is not None:
            self._least = min(self._least or outcome.footprint.ram, outcome.footprint.ram)
        self.watch(self._tried, self._least)
        key = self._key((*passes, *arrangement), outcome)
        if key is None or not outcome.order:
            return Evaluation((*passes, *arrangement), 0, None, outcome.failure)
        return Evaluation((*passes, *outcome.order), key, outcome.footprint, "", self.objective, outcome.least or least)
