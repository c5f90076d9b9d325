"""`reorder-sums`: gather the constants of nested sums and of nested products into one.

    (x + 1) + (y + 2)  →  (x + y) + 3        ((x · 2) · y) / 4  →  (x · y) · 0.5        (x + 1) − (y − 2)  →  (x − y) + 3

What remains keeps its nesting, since that decides which values live together. Legal for whole numbers, which wrap, and up
to re-association for floats; not where the gathered constant would overflow, underflow, or have more elements than the
largest of those it replaces. Division joins in for floats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..operators import is_float, is_integer
from ..rule import Rule
from .terms import Term, broadcast, elements, is_inner, roots, shape_of_nest, terms_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

_SUM, _PRODUCT = ("relax.add", "relax.subtract"), ("relax.multiply", "relax.divide")


class ReorderSums(Rule):
    """Replace several constants of a sum, or of a product, by one."""

    name = "reorder-sums"
    summary = "gather the constants of nested sums and products: (x + 1) + (y + 2) = (x + y) + 3"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found = {}
        for operators in (_SUM, _PRODUCT):
            for var, call in roots(graph, operators):
                dtype = graph.dtype(call)
                if not is_float(dtype) and not (is_integer(dtype) and operators is _SUM):
                    continue
                if (new := _gather(call, graph, operators)) is not None:
                    found[var] = new
        return found


def _gather(call: Call, graph: Dataflow, operators: tuple[str, str]) -> Expr | None:
    terms = terms_of(call, graph, operators)
    arrays = [(graph.constant(term.expr), term.inverse) for term in terms]
    constants = [(array, inverse) for array, inverse in arrays if array is not None]
    if (
        len(constants) < 2
        or len(constants) == len(terms)
        or any(array.dtype.kind not in "fiu" for array, _ in constants)
    ):
        return None
    gathered = _evaluate(constants, additive=operators is _SUM)
    if gathered is None or gathered.size > max(array.size for array, _ in constants):
        return None
    place = _place(terms, [array is not None for array, _ in arrays], gathered.shape)
    if place is None:
        return None
    return _Rebuild(graph, operators, place, graph.const(gathered)).result(call)


def _evaluate(constants: list[tuple[np.ndarray, bool]], *, additive: bool) -> np.ndarray | None:
    """Return the sum or product of constants in their dtype; None if it is less exact than they are."""
    dtype = constants[0][0].dtype
    wide = np.float64 if dtype.kind == "f" else dtype
    total = np.array(0 if additive else 1, wide)
    with np.errstate(all="ignore"):
        for array, inverse in constants:
            value = array.astype(wide)
            if additive:
                total = total - value if inverse else total + value
            else:
                total = total / value if inverse else total * value
        result = total.astype(dtype)
    if dtype.kind == "f":
        tiny = np.finfo(dtype).tiny
        if not np.isfinite(result).all() or (not additive and (np.abs(result) < tiny).any()):
            return None
    return np.asarray(result)


def _place(terms: list[Term], constant: list[bool], shape: tuple[int, ...]) -> int | None:
    """Return the number of the smallest term the constant does not broadcast; None if there is none but the whole.

    None too for a nest with a number, which `like` would leave in its place.
    """
    shapes = [term.shape for term in terms if term.shape is not None]
    fitting = [
        (elements(own), number)
        for number, (term, own) in enumerate(zip(terms, shapes))
        if not constant[number] and not term.inverse and broadcast(own, shape) == own
    ]
    return min(fitting)[1] if fitting and len(shapes) == len(terms) else None


class _Rebuild:
    """Copy a nest without its constants, and with the gathered one beside the term in `place`."""

    def __init__(self, graph: Dataflow, operators: tuple[str, str], place: int, gathered: Expr):
        self.graph, self.operators, self.place, self.gathered = graph, operators, place, gathered
        self.number = 0
        self.fits = True

    def result(self, call: Call) -> Expr | None:
        left, right = self._node(call.args[0], 1), self._node(call.args[1], 1)
        new = self._join(call, left, right)
        return new if self.fits and shape_of_nest(new, self.graph) == self.graph.shape(call) else None

    def _node(self, expr: Expr, depth: int) -> Expr | None:
        """Return an operand without constants; None if nothing else is in it."""
        graph = self.graph
        if is_inner(expr, graph, self.operators, depth):
            call = graph.value(expr)
            left, right = (self._node(each, depth + 1) for each in call.args)
            return self._join(call, left, right)
        self.number += 1
        if graph.constant(expr) is not None:
            return None
        return self._direct(expr, self.gathered) if self.number - 1 == self.place else expr

    def _direct(self, x: Expr, y: Expr) -> Expr:
        return self.graph.op.add(x, y) if "relax.add" in self.operators else self.graph.op.multiply(x, y)

    def _join(self, call: Call, left: Expr | None, right: Expr | None) -> Expr | None:
        if right is None:
            return left
        if left is not None:
            return self.graph.like(call, (left, right))
        if self.graph.operator(call) == self.operators[0]:
            return right
        self.fits &= self.operators == _SUM  # a constant divided by x stays
        return self.graph.op.negative(right)
