"""What is known about one model: its graph states, how passes lead from one to another, and what each is worth.

    state 0 ──decompose-ops-for-inference──► state 1 ──eliminate-common-subexpr──► state 3
       │                                        │
       ▼ one outcome per tail                   ▼ one outcome per tail

Explicit effects are the differences of outcomes along an edge, implicit ones the edges a state has and the one before
it has not. A step along an edge includes the clean-up that follows every graph pass of a candidate (actions.CLEAN_UP).
With the edges any sequence of the passes can be looked up, not only those that were evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .features import FEATURES

#: what a sequence is taken to cost where it fails or where nobody knows: as much as TVM's default
UNKNOWN = 1.0

#: in `State.edges`: the pass fails on this graph, or leads to a state that was not looked at
BEYOND = -1

Specs = tuple[str, ...]


@dataclass(frozen=True)
class KnownSequence:
    """A sequence by its specs: graph passes, then a tail from the graph to kernels."""

    prefix: Specs
    tail: Specs


@dataclass(frozen=True)
class KnownOutcome:
    """What a sequence costs, by objective (of evaluation.OBJECTIVES), in parts of what `tvm-default` costs."""

    ram: float
    sum: float

    def cost(self, objective: str) -> float:
        return self.ram if objective == "ram" else self.sum


@dataclass(frozen=True)
class KnownState:
    """A graph: its `features` (search/knowledge/features.py); `edges`, the numbers of the states that passes lead to, without the
    passes that change nothing; and per tail of the record the number of its outcome, None where there is none."""

    features: tuple[float, ...]
    edges: Mapping[str, int]
    outcomes: tuple[int | None, ...]


@dataclass(frozen=True)
class ModelRecord:
    """One model on one target. State 0 is the imported graph, tail 0 TVM's default. `digest` is that of the structure
    of the graph, without weights. Two tails have one outcome where they lead to the same kernels."""

    model: str
    digest: str
    target: str
    tails: tuple[Specs, ...]
    outcomes: tuple[KnownOutcome, ...]
    states: tuple[KnownState, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Records with one key tell of the same thing."""
        return (self.digest, self.target)

    def cost(self, sequence: KnownSequence, objective: str) -> float:
        """The cost of `sequence` on this model, 1 being `tvm-default`'s; UNKNOWN where it fails or was never tried."""
        number = self.state_after(sequence.prefix)
        if number is None or sequence.tail not in self.tails:
            return UNKNOWN
        found = self.cost_of(number, self.tails.index(sequence.tail), objective)
        return UNKNOWN if found is None else found

    def cost_of(self, state: int, tail: int, objective: str) -> float | None:
        outcome = self.states[state].outcomes[tail]
        return None if outcome is None else self.outcomes[outcome].cost(objective)

    def state_after(self, prefix: Iterable[str]) -> int | None:
        """The state the passes of `prefix` lead to; None where one fails or leads beyond what is known."""
        number = 0
        for spec in prefix:
            number = self.states[number].edges.get(spec, number)
            if number == BEYOND:
                return None
        return number

    def prefixes(self) -> dict[int, Specs]:
        """The shortest prefix to every state, breadth-first; of equally short ones the first by name."""
        found: dict[int, Specs] = {0: ()}
        for number in (waiting := [0]):
            for spec, after in sorted(self.states[number].edges.items()):
                if after != BEYOND and after not in found:
                    found[after] = (*found[number], spec)
                    waiting.append(after)
        return found

    def best(self, objective: str) -> float:
        """The least cost of all sequences."""
        return min(outcome.cost(objective) for outcome in self.outcomes)

    def winners(self, objective: str, within: float = 0.001) -> tuple[KnownSequence, ...]:
        """For each tail by which the best cost is reached, up to `within` of it, the shortest sequence that does."""
        limit = self.best(objective) * (1 + within)
        found: dict[Specs, KnownSequence] = {}
        for state, prefix in self.prefixes().items():
            for number, tail in enumerate(self.tails):
                cost = self.cost_of(state, number, objective)
                if cost is not None and cost <= limit:
                    found.setdefault(tail, KnownSequence(prefix, tail))
        return tuple(found.values())


def first_problem(record: ModelRecord) -> str | None:
    """What makes a record useless, or None."""
    if not record.states or not record.tails or not record.outcomes:
        return "it has no states, tails or outcomes"
    if any(not math.isfinite(cost) or cost <= 0 for each in record.outcomes for cost in (each.ram, each.sum)):
        return "an outcome is no positive number"
    for number, state in enumerate(record.states):
        if len(state.features) != len(FEATURES) or not all(map(math.isfinite, state.features)):
            return f"state {number} has not the {len(FEATURES)} features of this version"
        if not all(BEYOND <= after < len(record.states) for after in state.edges.values()):
            return f"an edge of state {number} leads nowhere"
        if len(state.outcomes) != len(record.tails):
            return f"state {number} has not one outcome per tail"
        if not all(each is None or 0 <= each < len(record.outcomes) for each in state.outcomes):
            return f"state {number} names an outcome that is not there"
    if record.states[0].outcomes[0] is None:
        return "it has no outcome of tvm-default"
    return None
