"""`minimise-broadcasts`: compute on values before they are broadcast.

    (M₁ + s₁) + (M₂ + s₂)  →  (M₁ + M₂) + (s₁ + s₂)        M · broadcast(s)  →  M · s        f(broadcast(s))  →  broadcast(f(s))
    M + M · s  →  M · (s + 1)

Nested operands of one commutative operator are taken smallest pair first, if that computes fewer elements; the same
number leaves the nesting alone, since that decides which values live together. Legal for whole numbers, maxima and logic,
and up to re-association for floats. A broadcast is dropped where the other operands give the result its shape, and moves
behind element-wise operators, whichever they are, if all their operands are smaller without it.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..operators import COMMUTATIVE, ELEMENTWISE
from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

Shape = tuple[int, ...]
#: operators above each other at most that are read as one nest
_DEPTH = 128


class MinimiseBroadcasts(Rule):
    """Replace element-wise nests by ones that compute fewer elements."""

    name = "minimise-broadcasts"
    summary = "compute on small operands before they are broadcast: (M + s) + (N + t) = (M + N) + (s + t)"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found = dict(super().replacements(graph))
        for operator in sorted(COMMUTATIVE):
            for var, call in graph.calls(operator):
                if var not in found and _is_top(var, graph, operator):
                    new = _smallest_first(call, graph, operator)
                    found |= {} if new is None else {var: new}
        return found

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        if graph.operator(call) not in ELEMENTWISE:
            return None
        if (product := _gate(call, graph)) is not None:
            return product
        operands = graph.tensors(call)
        small = [_strip_broadcast(each, graph) for each in operands]
        shapes = [shape for each in small if (shape := graph.shape(each)) is not None]
        if all(one is other for one, other in zip(small, operands)) or len(shapes) < len(small):
            return None
        shape, before = np.broadcast_shapes(*shapes), graph.static_shape(call)
        if shape == before:
            return graph.like(call, small)
        alone = all(graph.uses(each) == 1 for each, other in zip(operands, small) if each is not other)
        if not alone or prod(shape) >= prod(before):
            return None
        return graph.op.broadcast_to(graph.like(call, small), before)


def _gate(call: Call, graph: Dataflow) -> Expr | None:
    """Factor M + M · s, a residual gate, into M · (s + 1) for a smaller s; None for any other call."""
    if graph.operator(call) != "relax.add":
        return None
    for whole, product in (call.args, call.args[::-1]):
        gated = graph.call(product, "relax.multiply")
        if gated is None or graph.uses(product) > 1 or not graph.same_type(whole, call):
            continue
        for one, gate in (gated.args, gated.args[::-1]):
            shape = graph.shape(gate)
            if graph.same(one, whole) and shape is not None and prod(shape) < prod(graph.static_shape(call)):
                return graph.op.multiply(whole, graph.op.add(gate, graph.scalar(1, graph.dtype(call))))
    return None


def _strip_broadcast(expr: Expr, graph: Dataflow) -> Expr:
    """Return the operand of a broadcast; itself for any other value."""
    found = graph.call(expr, "relax.broadcast_to")
    return expr if found is None else found.args[0]


def _is_top(var: Var, graph: Dataflow, operator: str) -> bool:
    """Return whether no other call of the operator alone reads a value of static shape."""
    users = graph.users(var)
    is_inner = graph.uses(var) == 1 and users and graph.operator(users[0]) == operator
    return not is_inner and graph.shape(var) is not None


def _smallest_first(call: Call, graph: Dataflow, operator: str) -> Expr | None:
    """Return the nest that joins the pair with the smallest result first; None if it computes no fewer elements."""
    terms: list[tuple[Expr, Shape | None]] = []
    before = 0

    def flatten(expr: Expr, depth: int) -> None:
        nonlocal before
        shape = graph.shape(expr)
        if graph.operator(expr) != operator or shape is None or depth > _DEPTH or graph.uses(expr) > 1:
            terms.append((expr, shape))
            return
        before += prod(shape)
        for each in graph.value(expr).args:
            flatten(each, depth + 1)

    flatten(call, 1)
    left = [(expr, shape) for expr, shape in terms if shape is not None]
    if len(left) < max(len(terms), 3) or len({shape for _, shape in left}) == 1:
        return None
    total = 0
    while len(left) > 1:
        _, first, second = min((prod(np.broadcast_shapes(left[i][1], left[j][1])), i, j) for i, j in _pairs(left))
        (one, shape), (other, other_shape) = left[first], left.pop(second)
        left[first] = graph.like(call, (one, other)), np.broadcast_shapes(shape, other_shape)
        total += prod(left[first][1])
    return left[0][0] if total < before else None


def _pairs(left: list[tuple[Expr, Shape]]) -> Iterator[tuple[int, int]]:
    """Yield the first pair of each two shapes."""
    places: dict[Shape, list[int]] = {}
    for number, (_, shape) in enumerate(left):
        places.setdefault(shape, []).append(number)
    firsts = [each[0] for each in places.values()]
    yield from ((each[0], each[1]) for each in places.values() if len(each) > 1)
    yield from ((min(i, j), max(i, j)) for place, i in enumerate(firsts) for j in firsts[place + 1 :])
