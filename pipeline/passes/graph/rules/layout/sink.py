"""Move transposes, or reshapes, through the operators between them until they meet and cancel.

    x ─ transpose ─ relu ─ add ─ transpose⁻¹ ─ y        x ─ relu ─ add ─ y
    x ─ transpose ──────────┘                     →     x ───────┘

A region is a connected set of operators that compute as well before the movement: all their operands, but constants, are
movements of one kind or in the region. Moved as a whole, it loses the movements that lead into it; a movement behind it
composes with the one it undoes; any other value read outside of the region is moved where it leaves. Operators at the
region's end are left out as long as that gains. A region is moved if what its movements weigh falls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

#: how a value lies relative to the one it is moved from: the axes of a transpose, the shape before a reshape
Key = Any


class Movement(Protocol):
    """Kind of operator to move."""

    def key(self, call: Call, graph: Dataflow) -> Key | None:
        """Return the key of a movement; None for any other call."""

    def through(self, call: Call, key: Key, graph: Dataflow) -> Key | None:
        """Return the key of a call computed on operands before they are moved by `key`; None if that is not the same."""

    def compute(self, call: Call, key: Key, before: Mapping[Var, Expr], graph: Dataflow) -> Expr:
        """Return the call on its operands as they were before they were moved by `key`."""

    def move(self, value: Expr, key: Key, shape: tuple[int, ...], graph: Dataflow) -> Expr:
        """Return a value of the region as it is read outside, in `shape`."""

    def compose(self, value: Expr, key: Key, call: Call, graph: Dataflow) -> Expr:
        """Return `call`, a movement of a value of the region, computed from the value before it was moved."""

    def weight(self, shape: tuple[int, ...]) -> int:
        """Return the cost of a movement to `shape`."""

    def is_free(self, key: Key, call: Call | None, graph: Dataflow) -> bool:
        """Return whether reading a value of the region needs no movement: outside, or by the movement `call`."""


def sink(graph: Dataflow, movement: Movement) -> dict[Var, Expr]:
    """Return new values for the results of the regions worth moving."""
    keys: dict[Var, Key] = {}
    sources: dict[Var, Expr] = {}
    inside: dict[Var, Call] = {}
    for var, call in graph.calls():
        key = movement.key(call, graph)
        if key is not None:
            keys[var], sources[var] = key, call.args[0]
            continue
        moved = [keys.get(each) for each in operands(call, graph)]
        if graph.shape(call) is None or not moved or None in moved or moved != moved[:1] * len(moved):
            continue
        if (key := movement.through(call, moved[0], graph)) is not None:
            keys[var], inside[var] = key, call
    found: dict[Var, Expr] = {}
    touched: set[Var] = set()
    for part in _connected_sets(graph, inside, keys):
        region = _Region(graph, movement, keys, sources, {var: inside[var] for var in part})
        around = region.movements()
        if touched.isdisjoint(around) and (new := region.replacements()):
            found.update(new)
            touched |= around  # a movement between two regions counts for one of them
    return found


def operands(call: Call, graph: Dataflow) -> list[Var]:
    """List the variables a call reads, fields of tuples included, each once."""
    flat = [each for argument in call.args for each in (graph.fields(argument) or (argument,))]
    return list(dict.fromkeys(graph.variable(each) for each in flat if graph.is_variable(each)))


def _connected_sets(graph: Dataflow, inside: Mapping[Var, Call], keys: Mapping[Var, Key]) -> list[list[Var]]:
    """Divide the operators into sets that share operands, each in the order of the graph."""
    leader: dict[Var, Var] = {}

    def find(var: Var) -> Var:
        while (above := leader.get(var)) is not None:
            var = above
        return var

    for var, call in inside.items():
        for operand in operands(call, graph):
            if operand in keys and (top := find(operand)) is not var:
                leader[top] = var
    parts: dict[Var, list[Var]] = {}
    for var in inside:
        parts.setdefault(find(var), []).append(var)
    return list(parts.values())


class _Region:
    """Connected operators, and the choice among them."""

    def __init__(
        self, graph: Dataflow, movement: Movement, keys: Mapping[Var, Key], sources: Mapping[Var, Expr],
        inside: dict[Var, Call],
    ):  # fmt: skip
        self.graph, self.movement, self.keys, self.sources, self.inside = graph, movement, keys, sources, inside
        self.order = list(inside)

    def movements(self) -> set[Var]:
        """Return the movements around the whole set."""
        before = {each for call in self.inside.values() for each in operands(call, self.graph) if each in self.sources}
        return before | {user for var in self.inside for user in self.graph.users(var) if user in self.sources}

    def replacements(self) -> dict[Var, Expr]:
        """Leave out operators from the end while that gains; move the rest if it weighs less."""
        for var, call in reversed(list(self.inside.items())):
            if not any(user in self.inside for user in self.graph.users(var)):
                before = self._weight_around(var, call)
                del self.inside[var]
                if self._weight_around(var, call) > before:
                    self.inside[var] = call
        return self._move() if self._weight() < self._weight(apart=True) else {}

    def _weight_around(self, var: Var, call: Call) -> int:
        return sum(map(self._weight_of, [var, *operands(call, self.graph)]))

    def _weight(self, *, apart: bool = False) -> int:
        """Sum the movements before and behind the region; `apart`, with no region at all."""
        values = dict.fromkeys(
            [*self.inside, *(o for call in self.inside.values() for o in operands(call, self.graph))]
        )
        region, self.inside = self.inside, {} if apart else self.inside
        total = sum(map(self._weight_of, values))
        self.inside = region
        return total

    def _weight_of(self, var: Var) -> int:
        """Weigh the movements that a value, a movement or an operator, needs around it."""
        graph, movement = self.graph, self.movement
        users = graph.users(var)
        if var in self.sources:
            needed = graph.is_output(var) or any(user not in self.inside for user in users)
            return movement.weight(graph.static_shape(var)) if needed else 0
        if var not in self.keys:
            return 0
        behind = [user for user in users if user in self.sources]
        total = sum(
            0 if var in self.inside and movement.is_free(self.keys[var], graph.value(user), graph)
            else movement.weight(graph.static_shape(user))
            for user in behind
        )  # fmt: skip
        if var in self.inside and self._leaves(var) and not movement.is_free(self.keys[var], None, graph):
            total += movement.weight(graph.static_shape(var))
        return total

    def _leaves(self, var: Var) -> bool:
        """Return whether a value of the region is read outside of it by anything but a movement."""
        outside = (user for user in self.graph.users(var) if user not in self.inside and user not in self.sources)
        return self.graph.is_output(var) or any(True for _ in outside)

    def _move(self) -> dict[Var, Expr]:
        graph, movement = self.graph, self.movement
        read = {each for call in self.inside.values() for each in operands(call, graph)}
        before: dict[Var, Expr] = {var: self.sources[var] for var in read if var in self.sources}
        found: dict[Var, Expr] = {}
        for var in self.order:
            if var not in self.inside:
                continue
            before[var] = movement.compute(
                self.inside[var], self.keys[operands(self.inside[var], graph)[0]], before, graph
            )
            if self._leaves(var):
                found[var] = movement.move(before[var], self.keys[var], graph.static_shape(var), graph)
            for user in self.graph.users(var):
                if user in self.sources:
                    found[user] = movement.compose(before[var], self.keys[var], graph.value(user), graph)
        return found
