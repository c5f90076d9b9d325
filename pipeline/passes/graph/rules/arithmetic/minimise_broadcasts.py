"""`minimise-broadcasts`: compute on values before they are broadcast.

    (M₁ + s₁) + (M₂ + s₂)  →  (M₁ + M₂) + (s₁ + s₂)        M · broadcast(s)  →  M · s        f(broadcast(s))  →  broadcast(f(s))

Nested operands of one commutative operator are taken smallest pair first, if that computes fewer elements; the same
number leaves the nesting alone, since that decides which values live together. Legal for whole numbers, maxima and logic,
and up to re-association for floats. A broadcast is dropped where the other operands give the result its shape, and moves
behind element-wise operators, whichever they are, if all their operands are smaller without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators import COMMUTATIVE, ELEMENTWISE
from ..rule import Rule
from .terms import Shape, broadcast, elements, elements_of_calls, roots, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow


class MinimiseBroadcasts(Rule):
    """Replace element-wise nests by ones that compute fewer elements."""

    name = "minimise-broadcasts"
    summary = "compute on small operands before they are broadcast: (M + s) + (N + t) = (M + N) + (s + t)"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found = dict(super().replacements(graph))
        for operator in sorted(COMMUTATIVE):
            for var, call in roots(graph, (operator,)):
                if var not in found and (new := _smallest_first(call, graph, operator)) is not None:
                    found[var] = new
        return found

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        if graph.operator(call) not in ELEMENTWISE:
            return None
        operands = graph.tensors(call)
        small = [_strip_broadcast(each, graph) for each in operands]
        shapes = [shape for each in small if (shape := graph.shape(each)) is not None]
        if all(one is other for one, other in zip(small, operands)) or len(shapes) < len(small):
            return None
        shape, before = broadcast(*shapes), graph.static_shape(call)
        if shape == before:
            return graph.like(call, small)
        alone = all(graph.uses(each) == 1 for each, other in zip(operands, small) if each is not other)
        if not alone or elements(shape) >= elements(before):
            return None
        return graph.op.broadcast_to(graph.like(call, small), before)


def _strip_broadcast(expr: Expr, graph: Dataflow) -> Expr:
    """Return the operand of a broadcast; itself for any other value."""
    found = graph.call(expr, "relax.broadcast_to")
    return expr if found is None else found.args[0]


def _smallest_first(call: Call, graph: Dataflow, operator: str) -> Expr | None:
    """Return the nest that joins the pair with the smallest result first; None if it computes no fewer elements."""
    terms = terms_of(call, graph, (operator,))
    left = [(term.expr, term.shape) for term in terms if term.shape is not None]
    if len(left) < max(len(terms), 3) or len({shape for _, shape in left}) == 1:
        return None
    total = 0
    while len(left) > 1:
        _, first, second = min((elements(broadcast(left[i][1], left[j][1])), i, j) for i, j in _pairs(left))
        (one, shape), (other, other_shape) = left[first], left.pop(second)
        left[first] = graph.like(call, (one, other)), broadcast(shape, other_shape)
        total += elements(left[first][1])
    return left[0][0] if total < elements_of_calls(call, graph, (operator,)) else None


def _pairs(left: list[tuple[Expr, Shape]]) -> Iterator[tuple[int, int]]:
    """Yield the first pair of each two shapes."""
    places: dict[Shape, list[int]] = {}
    for number, (_, shape) in enumerate(left):
        places.setdefault(shape, []).append(number)
    firsts = [each[0] for each in places.values()]
    yield from ((each[0], each[1]) for each in places.values() if len(each) > 1)
    yield from ((min(i, j), max(i, j)) for place, i in enumerate(firsts) for j in firsts[place + 1 :])
