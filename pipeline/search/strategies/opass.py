"""`opass`: transfer graph of OPASS (ICSME 2024), with structural state keys.

The paper keys states by (inputs, outputs, ops, bytes). States keep opportunities: actions believed to change them. A
child inherits its parent's; with a small probability all actions are tried on it again, and the findings are propagated
to its ancestors (after a check) and descendants (without one).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ...passes.base import Pass
from ..evaluate.candidates import TAILS, Candidate
from .trace import Trace

ROUNDS = 200
REDETECTION = 0.03

#: a graph pass to append, or a tail to lower by
_Action = Pass | tuple[Pass, ...]


@dataclass
class _State:
    candidate: Candidate
    cost: int
    parents: set[int] = field(default_factory=set)
    children: set[int] = field(default_factory=set)
    opportunities: list[_Action] = field(default_factory=list)
    tried: list[_Action] = field(default_factory=list)

    def untried(self) -> list[_Action]:
        return [action for action in self.opportunities if action not in self.tried]

    def add(self, action: _Action) -> None:
        if action not in self.opportunities:
            self.opportunities.append(action)


def opass(trace: Trace, seed: int) -> None:
    graph = _TransferGraph(trace, random.Random(seed))
    if graph.start is None:
        return
    graph.detect(graph.start)
    for _ in range(ROUNDS):
        if trace.finished or not graph.step():
            return


class _TransferGraph:
    def __init__(self, trace: Trace, choice: random.Random):
        self.trace, self.choice = trace, choice
        self.states: dict[int, _State] = {}
        self.start = self._visit(Candidate(), None)

    def step(self) -> bool:
        """Apply a random untried opportunity of a state drawn by rank; False if none is left."""
        open_states = [(key, state) for key, state in self.states.items() if state.untried()]
        if self.start is None or not open_states:
            return False
        first = self.states[self.start].cost
        open_states.sort(key=lambda item: first / max(1, item[1].cost) * len(item[1].untried()))
        ranks = range(1, len(open_states) + 1)
        key, state = self.choice.choices(open_states, weights=list(ranks))[0]
        action = self.choice.choice(state.untried())
        state.tried.append(action)
        child = self._visit(_apply(state.candidate, action), key)
        if child is not None and child != key and self.choice.random() < REDETECTION:
            self.detect(child)
        return True

    def detect(self, key: int) -> None:
        """Try all actions on a state; record effective ones as opportunities, here and along the graph."""
        actions: tuple[Pass | tuple[Pass, ...], ...] = (*self.trace.passes, *TAILS)
        for action in actions:
            if self.trace.finished:
                return
            if self._changes(key, action):
                self.states[key].add(action)
                for ancestor in self._reach(key, "parents"):
                    if self._changes(ancestor, action):
                        self.states[ancestor].add(action)
                for descendant in self._reach(key, "children"):
                    self.states[descendant].add(action)

    def _changes(self, key: int, action: _Action) -> bool:
        found = self.trace.evaluator.evaluate(_apply(self.states[key].candidate, action).passes)
        self.trace.consider(found)
        return found.footprint is not None and found.key != key

    def _visit(self, candidate: Candidate, parent: int | None) -> int | None:
        """Evaluate `candidate` and link its state to `parent`; return the key, None if it fails."""
        self.trace.evaluate(candidate)
        found = self.trace.evaluator.evaluate(candidate.passes)
        if found.footprint is None:
            return None
        if found.key not in self.states:
            inherited = list(self.states[parent].opportunities) if parent is not None else []
            self.states[found.key] = _State(candidate, found.cost[0], opportunities=inherited)
        if parent is not None and parent != found.key:
            self.states[found.key].parents.add(parent)
            self.states[parent].children.add(found.key)
        return found.key

    def _reach(self, key: int, side: str) -> list[int]:
        """Collect all ancestors (`parents`) or descendants (`children`), breadth-first."""
        seen: dict[int, None] = {}
        waiting = sorted(getattr(self.states[key], side))
        while waiting:
            each = waiting.pop(0)
            if each not in seen and each != key:
                seen[each] = None
                waiting += sorted(getattr(self.states[each], side))
        return list(seen)


def _apply(candidate: Candidate, action: _Action) -> Candidate:
    if isinstance(action, tuple):
        return Candidate(candidate.prefix, action)
    return Candidate((*candidate.prefix, action), candidate.tail)
