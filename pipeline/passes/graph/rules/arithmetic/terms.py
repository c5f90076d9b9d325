"""Flatten nested sums and products into terms, and count the elements that computing them takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

Shape = tuple[int, ...]

#: operators above each other at most that are read as one nest
DEPTH = 128


@dataclass(frozen=True)
class Term:
    """Operand of a flattened sum or product; `inverse` if it is subtracted, or divides.

    `shape` is None for a number, which TVM takes in the place of a tensor.
    """

    expr: Expr
    shape: Shape | None
    inverse: bool = False


def roots(graph: Dataflow, operators: Sequence[str]) -> Iterator[tuple[Var, Call]]:
    """Yield the calls of `operators` that no other call of them continues: tops of sums or products."""
    for var, call in graph.calls(*operators):
        users = graph.users(var)
        if graph.uses(var) == 1 and users and graph.operator(users[0]) in operators:
            continue
        if graph.shape(call) is not None:
            yield var, call


def terms_of(call: Call, graph: Dataflow, operators: Sequence[str]) -> list[Term]:
    """Flatten a call of `operators` into its terms, in order; the second operator, if any, inverts its second operand.

    Operands computed for this call alone are looked into; all others are terms.
    """
    inverse = operators[1] if len(operators) > 1 else ""

    found: list[Term] = []

    def flatten(expr: Expr, inverted: bool, depth: int) -> None:
        if not is_inner(expr, graph, operators, depth):
            found.append(Term(expr, graph.shape(expr), inverted))
            return
        left, right = graph.value(expr).args
        flatten(left, inverted, depth + 1)
        flatten(right, inverted != (graph.operator(expr) == inverse), depth + 1)

    flatten(call, False, 0)
    return found


def is_inner(expr: Expr, graph: Dataflow, operators: Sequence[str], depth: int) -> bool:
    """Return whether a value, `depth` operators below the top of a nest, is one of its operators."""
    if graph.operator(expr) not in operators or graph.shape(expr) is None:
        return False
    return depth == 0 or (depth < DEPTH and graph.uses(expr) == 1)


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that operands of these shapes broadcast to."""
    return np.broadcast_shapes(*shapes)


def elements(shape: Shape) -> int:
    return math.prod(shape)


def shape_of_nest(expr: Expr, graph: Dataflow) -> Shape:
    """Return the shape of new element-wise calls, nested over values of the graph."""
    known = graph.shape(expr)
    return broadcast(*(shape_of_nest(each, graph) for each in expr.args)) if known is None else known


def elements_of_nest(expr: Expr, graph: Dataflow) -> int:
    """Count the elements computed by new element-wise calls, nested over values of the graph."""
    if graph.shape(expr) is not None:
        return 0
    return elements(shape_of_nest(expr, graph)) + sum(elements_of_nest(each, graph) for each in expr.args)


def elements_of_calls(call: Expr, graph: Dataflow, operators: Sequence[str], depth: int = 0) -> int:
    """Count the elements computed by a nest of `operators` in the graph, without its terms."""
    if not is_inner(call, graph, operators, depth):
        return 0
    operands = graph.value(call).args
    return elements(graph.static_shape(call)) + sum(elements_of_calls(e, graph, operators, depth + 1) for e in operands)
