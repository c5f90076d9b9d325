"""`hoist-factors`: take a factor common to the terms of a sum out of it.

    x·a + b·x + x·c  →  x·(a + b + c)        x + x + x  →  3·x        x·w + y·w  →  (x + y)·w for matrices, too

The factor of most terms first; the sum is rebuilt if that computes fewer elements, and a sum of constants is evaluated.
Products that something else reads stay. Legal for whole numbers, and up to re-association for floats; ∞ and NaN may come
about in other places. A matrix product is shared if the operands to add are constants, or no larger than the result.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from ..operators import is_float, is_integer
from ..rule import Rule
from .terms import Shape, Term, elements, elements_of_calls, elements_of_nest, roots, shape_of_nest, terms_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

_SUM, _PRODUCT = ("relax.add", "relax.subtract"), ("relax.multiply",)


@dataclass(frozen=True)
class _Product:
    """Term of a sum as a product: its factors that are computed, in order, and the number they are multiplied with."""

    term: Term
    factors: tuple[Expr, ...]
    number: float


class HoistFactors(Rule):
    """Replace sums of products with a common factor by products of sums."""

    name = "hoist-factors"
    summary = "take common factors out of sums: x·a + b·x = x·(a + b), x + x = 2·x, also for matrix products"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found = {}
        for var, call in roots(graph, _SUM):
            dtype = graph.dtype(call)
            if is_float(dtype) or is_integer(dtype):
                new = _hoist(call, graph)
                if new is not None:
                    found[var] = new
        for var, call in graph.calls("relax.add"):
            if var not in found and (new := _share_product(call, graph)) is not None:
                found[var] = new
        return found


def _hoist(call: Call, graph: Dataflow) -> Expr | None:
    """Return the sum with the factor of most terms taken out; None if that computes no fewer elements."""
    products = [_product(term, graph) for term in terms_of(call, graph, _SUM)]
    counts = Counter(key for each in products for key in dict.fromkeys(map(graph.identity, each.factors)))
    if not counts:
        return None
    factor, count = max(counts.items(), key=lambda item: item[1])  # the first of those in most terms
    if count < 2:
        return None
    having, others = [], []
    for each in products:
        if factor in map(graph.identity, each.factors):
            having.append(each)
        else:
            others.append(each.term)
    rest = _sum_of_rests(having, factor, graph, graph.dtype(call))
    if rest is None:
        return None
    joined = reduce(
        lambda total, term: graph.op.subtract(total, term.expr) if term.inverse else graph.op.add(total, term.expr),
        sorted(others, key=lambda term: term.inverse),
        graph.op.multiply(factor, rest),
    )
    before = elements_of_calls(call, graph, _SUM) + sum(
        elements_of_calls(each.term.expr, graph, _PRODUCT, 1) for each in having
    )
    if shape_of_nest(joined, graph) != graph.shape(call) or elements_of_nest(joined, graph) >= before:
        return None
    return joined


def _product(term: Term, graph: Dataflow) -> _Product:
    """Read a term as a product; numbers among its factors, and the sign, become one number."""
    number, factors = -1.0 if term.inverse else 1.0, []
    nested = graph.call(term.expr, *_PRODUCT) if graph.uses(term.expr) == 1 else None
    for each in terms_of(nested, graph, _PRODUCT) if nested is not None else [term]:
        value = graph.uniform(each.expr)
        if value is not None and not each.shape and value.dtype.kind in "fiu":
            number *= float(value)
        else:
            factors.append(each.expr)
    return _Product(term, tuple(factors), number)


def _sum_of_rests(having: list[_Product], factor: Expr, graph: Dataflow, dtype: str) -> Expr | None:
    """Return the sum of the other factors of each product, numbers evaluated; None if it vanishes or overflows."""
    number, rests = 0.0, []
    for each in having:
        place = [graph.identity(one) for one in each.factors].index(factor)
        rest = [*each.factors[:place], *each.factors[place + 1 :]]
        if not rest:
            number += each.number
            continue
        if each.number not in (1.0, -1.0):
            rest.append(_scalar(each.number, dtype, graph))
        rests.append((reduce(graph.op.multiply, rest), each.number == -1.0))
    rests.sort(key=lambda rest: rest[1])
    if not rests:
        return _scalar(number, dtype, graph) if number and _fits(number, dtype) else None
    total, negative = rests[0]
    if negative:
        return None
    for rest, minus in rests[1:]:
        total = graph.op.subtract(total, rest) if minus else graph.op.add(total, rest)
    if not number:
        return total if len(having) == len(rests) else None
    return graph.op.add(total, _scalar(number, dtype, graph)) if _fits(number, dtype) else None


def _fits(number: float, dtype: str) -> bool:
    if is_integer(dtype):
        bounds = np.iinfo(dtype)
        return bounds.min <= number <= bounds.max
    return abs(number) < 6e4  # float16 holds it


def _scalar(number: float, dtype: str, graph: Dataflow) -> Expr:
    return graph.scalar(int(number) if is_integer(dtype) else number, dtype)


def _share_product(call: Call, graph: Dataflow) -> Expr | None:
    """Return x·w + y·w as (x + y)·w, or w·x + w·y as w·(x + y), for matrices."""
    left, right = (graph.call(each, "relax.matmul") if graph.uses(each) == 1 else None for each in call.args)
    if left is None or right is None or left.attrs.out_dtype != right.attrs.out_dtype:
        return None
    for place in (0, 1):
        shared, one, other = left.args[1 - place], left.args[place], right.args[place]
        if not graph.same(shared, right.args[1 - place]) or not graph.same_type(one, other):
            continue
        first, second = graph.constant(one), graph.constant(other)
        apart = not (graph.is_shared(one) and graph.is_shared(other))
        if apart and first is not None and second is not None and first.dtype.kind == second.dtype.kind == "f":
            total = graph.const((first + second).astype(first.dtype))
        elif _elements(graph.shape(one)) <= _elements(graph.shape(call)):
            total = graph.op.add(one, other)
        else:
            continue
        return graph.like(left, (total, shared) if place == 0 else (shared, total))
    return None


def _elements(shape: Shape | None) -> float:
    return float("inf") if shape is None else elements(shape)
