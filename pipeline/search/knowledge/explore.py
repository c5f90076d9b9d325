"""Explore a model within limits, into a record of its states and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import tvm_ffi

from ...errors import ModelError
from ...passes.base import Pass
from ...passes.sequence.sequence import specs_of
from ..evaluate.candidates import TAILS, Candidate, actions, clean
from ..evaluate.closure import Closure, Prefix
from ..evaluate.evaluation import Evaluation, Evaluator
from .family import family_of
from .graph_features import graph_features, read_graph
from .record import BEYOND, KnownOutcome, KnownState, ModelRecord

#: graph states of a record, at most: those with the shortest prefixes
STATES = 24
#: evaluated states of kernels, at most
EVALUATIONS = 256

#: significant decimals of a relative cost
_DIGITS = 5


#: a state and a tail, by number
_Cell = tuple[int, int]


@dataclass
class _Table:
    """Table of outcomes: `numbers` by the key of the kernels, `cells` by state and tail."""

    reference: Evaluation
    numbers: dict[int, int] = field(default_factory=dict)
    outcomes: list[KnownOutcome] = field(default_factory=list)
    cells: dict[_Cell, int | None] = field(default_factory=dict)

    def add(self, cell: _Cell, found: Evaluation) -> None:
        if found.footprint is None:
            self.cells[cell] = None
            return
        if found.key not in self.numbers:
            self.numbers[found.key] = len(self.outcomes)
            self.outcomes.append(_relative(found, self.reference))
        self.cells[cell] = self.numbers[found.key]

    def rank(self, cell: _Cell) -> tuple[float, float]:
        number = self.cells.get(cell)
        return (float("inf"),) * 2 if number is None else (self.outcomes[number].ram, self.outcomes[number].sum)


def explore(
    evaluator: Evaluator,
    model: str,
    evaluations: int = EVALUATIONS,
    progress: Callable[[int], None] = lambda done: None,
) -> ModelRecord:
    """Evaluate every tail on every graph state, the promising ones first. Raises ModelError if tvm-default fails."""
    reference = evaluator.evaluate(TAILS[0])
    if reference.footprint is None:
        raise ModelError(f"'{model}' cannot be compiled: {reference.failure}.", "Nothing can be learnt from it.")
    prefixes, edges = _closure(evaluator)
    table = _Table(reference)
    for group in _groups(table, len(prefixes)):
        new = [cell for cell in dict.fromkeys(group) if cell not in table.cells]
        candidates = (Candidate(prefixes[state], TAILS[tail]).passes for state, tail in new)
        found = evaluator.evaluate_all(candidates)
        for cell in new:
            if evaluator.count >= evaluations:
                break
            table.add(cell, next(found))
            progress(evaluator.count)
    features = features_of(evaluator)
    states = tuple(
        KnownState(features(prefix), edges[number], _row(table, number)) for number, prefix in enumerate(prefixes)
    )
    return ModelRecord(
        model, _digest(evaluator), evaluator.target.name, tuple(map(specs_of, TAILS)),
        tuple(table.outcomes), states, family_of(read_graph(evaluator.scorer.module(()))), specs_of(actions()),
    )  # fmt: skip


def _groups(table: _Table, states: int) -> Iterator[list[_Cell]]:
    """Yield all cells: every tail on the imported graph, every state by the best tail, then the others.

    Cells of a group are independent of each other; a group depends on the outcomes of those before it.
    """
    tails = range(len(TAILS))
    yield [(0, tail) for tail in tails]
    first = min(tails, key=lambda tail: table.rank((0, tail)))
    yield [(state, first) for state in range(states)]
    promising = sorted(range(states), key=lambda state: table.rank((state, first)))
    yield [(state, tail) for state in promising for tail in tails]


def _closure(evaluator: Evaluator) -> tuple[list[Prefix], list[dict[str, int]]]:
    """Return the shortest prefix to each of the first STATES graphs, and its successor by every pass."""
    closure = Closure(evaluator, actions(), STATES)
    found: dict[int, dict[str, int]] = {}
    for edge in closure.edges():
        after = BEYOND if edge.after is None else edge.after
        found.setdefault(edge.before, {})[edge.each.spec] = after
    edges = [
        {spec: after for spec, after in sorted(found.get(number, {}).items()) if after != number}
        for number in range(len(closure.prefixes))
    ]
    return closure.prefixes, edges


def _row(table: _Table, state: int) -> tuple[int | None, ...]:
    return tuple(table.cells.get((state, tail)) for tail in range(len(TAILS)))


def _relative(found: Evaluation, reference: Evaluation) -> KnownOutcome:
    ours, default = found.result, reference.result
    return KnownOutcome(_ratio(ours.ram, default.ram), _ratio(ours.sum, default.sum))


def _ratio(ours: int, default: int) -> float:
    """Return the relative cost, never 0: costs are compared as ratios, and by their logarithms."""
    return 1.0 if ours == default else max(10.0**-_DIGITS, round(ours / max(1, default), _DIGITS))


def _digest(evaluator: Evaluator) -> str:
    # TVM's hash, though it is weak: files of earlier versions hold it
    return f"{tvm_ffi.structural_hash(evaluator.scorer.module(()), skip_tensor_content=True):016x}"


def features_of(evaluator: Evaluator) -> Callable[[tuple[Pass, ...]], tuple[float, ...]]:
    """Return the features of a search's graphs by prefix, for `Knowledge.ranking`; kept for searches of other targets."""
    scorer = evaluator.scorer

    def features(prefix: tuple[Pass, ...]) -> tuple[float, ...]:
        specs = specs_of(clean(prefix))
        return tuple(scorer.kept("features", specs, lambda: graph_features(scorer.module(specs))))

    return cache(features)
