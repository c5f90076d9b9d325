"""Record of one model: graph states, the passes between them, and outcomes.

    state 0 ──decompose-ops-for-inference──► state 1 ──eliminate-common-subexpr──► state 3
       │                                        │
       ▼ one outcome per tail                   ▼ one outcome per tail

Explicit effects are the differences of outcomes along an edge, implicit ones the edges a state has and its predecessor
has not. A step along an edge includes the clean-up that follows every graph pass of a candidate (candidates.CLEAN_UP).
By the edges any sequence of the passes can be looked up, not only the evaluated ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .features import FEATURES

#: assumed cost of a sequence that fails or was never evaluated: as much as TVM's default
UNKNOWN = 1.0

#: in `KnownState.edges`: the pass fails on this graph, or leads to a state beyond the record
BEYOND = -1

Specs = tuple[str, ...]


@dataclass(frozen=True)
class KnownSequence:
    """Sequence by its specs: graph passes, then a tail to kernels."""

    prefix: Specs
    tail: Specs


@dataclass(frozen=True)
class KnownOutcome:
    """Cost of a sequence by objective, relative to `tvm-default`; see evaluation.OBJECTIVES."""

    ram: float
    sum: float

    def cost(self, objective: str) -> float:
        return self.ram if objective == "ram" else self.sum


@dataclass(frozen=True)
class KnownState:
    """Graph state of a record.

    `features` are those of features.py. `edges` map specs to the numbers of the next states, without passes that change
    nothing. `outcomes` are, per tail of the record, the number of its outcome, None if there is none.
    """

    features: tuple[float, ...]
    edges: Mapping[str, int]
    outcomes: tuple[int | None, ...]


@dataclass(frozen=True)
class ModelRecord:
    """Record of one model on one target.

    State 0 is the imported graph, tail 0 TVM's default. `digest` is a hash of the graph's structure, without weights.
    Two tails have one outcome if they lead to the same kernels. `family` is one of family.FAMILIES, `passes` are the
    specs of all graph passes that were tried, `refined` is the shortest sequence to the least ram after refinement;
    empty in records of before they were kept.
    """

    model: str
    digest: str
    target: str
    tails: tuple[Specs, ...]
    outcomes: tuple[KnownOutcome, ...]
    states: tuple[KnownState, ...]
    family: str = ""
    passes: Specs = ()
    refined: KnownSequence | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return the identity of the record: graph structure and target."""
        return (self.digest, self.target)

    def cost(self, sequence: KnownSequence, objective: str) -> float:
        """Return the cost of `sequence` relative to `tvm-default`; UNKNOWN if it fails or was never tried."""
        number = self.state_after(sequence.prefix)
        if number is None or sequence.tail not in self.tails:
            return UNKNOWN
        found = self.cost_of(number, self.tails.index(sequence.tail), objective)
        return UNKNOWN if found is None else found

    def cost_of(self, state: int, tail: int, objective: str) -> float | None:
        outcome = self.states[state].outcomes[tail]
        return None if outcome is None else self.outcomes[outcome].cost(objective)

    def state_after(self, prefix: Iterable[str]) -> int | None:
        """Return the state after the passes of `prefix`; None if one fails or leads beyond the record."""
        number = 0
        for spec in prefix:
            number = self.states[number].edges.get(spec, number)
            if number == BEYOND:
                return None
        return number

    def prefixes(self) -> dict[int, Specs]:
        """Find the shortest prefix to every state, breadth-first; ties are broken by name."""
        found: dict[int, Specs] = {0: ()}
        for number in (waiting := [0]):
            for spec, after in sorted(self.states[number].edges.items()):
                if after != BEYOND and after not in found:
                    found[after] = (*found[number], spec)
                    waiting.append(after)
        return found

    def best(self, objective: str) -> float:
        """Return the least cost of all sequences."""
        return min(outcome.cost(objective) for outcome in self.outcomes)

    def winners(self, objective: str, within: float = 0.001) -> tuple[KnownSequence, ...]:
        """Return, per tail that reaches the best cost up to `within`, the shortest such sequence."""
        limit = self.best(objective) * (1 + within)
        found: dict[Specs, KnownSequence] = {}
        for state, prefix in self.prefixes().items():
            for number, tail in enumerate(self.tails):
                cost = self.cost_of(state, number, objective)
                if cost is not None and cost <= limit:
                    found.setdefault(tail, KnownSequence(prefix, tail))
        return tuple(found.values())


def first_problem(record: ModelRecord) -> str | None:
    """Describe the first defect of a record, or return None."""
    if not record.states or not record.tails or not record.outcomes:
        return "it has no states, tails or outcomes"
    if any(not math.isfinite(cost) or cost <= 0 for each in record.outcomes for cost in (each.ram, each.sum)):
        return "an outcome is not a positive number"
    for number, state in enumerate(record.states):
        if len(state.features) != len(FEATURES) or not all(map(math.isfinite, state.features)):
            return f"state {number} lacks the {len(FEATURES)} features of this version"
        if not all(BEYOND <= after < len(record.states) for after in state.edges.values()):
            return f"an edge of state {number} leads nowhere"
        if len(state.outcomes) != len(record.tails):
            return f"state {number} lacks an outcome per tail"
        if not all(each is None or 0 <= each < len(record.outcomes) for each in state.outcomes):
            return f"state {number} names an unknown outcome"
    if record.states[0].outcomes[0] is None:
        return "it has no outcome of tvm-default"
    return None
