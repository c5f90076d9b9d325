"""`simplify-expressions`: choices without choice, chains of clips, roots written as powers, extents that are known.

    clip(relu x) = one clip    where(true, x, y) = x    where(c, x, x) = x    x ** 0.5 = √x    shape(x)[0] = 3, and what is
    computed from such numbers

Exact, but for √(−∞), which `x ** 0.5` has not, and NaN, of which relu and clip may make a bound. Squares are products from the import
on, and LLVM divides by powers of two as it multiplies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators import is_float, relax_operators
from ..rule import Rule
from .clamps import merge_clamps

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..dataflow import Dataflow

#: operators that importers write out on extents and positions, which are known
_OF_SHAPES = relax_operators("shape_to_tensor take where add less")


class SimplifyExpressions(Rule):
    """Replace an expression by one of fewer or cheaper operators."""

    name = "simplify-expressions"
    summary = "choices without choice, chains of clips, roots written as powers, extents that are known"

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        name = graph.operator(call)
        if not name or graph.shape(call) is None:
            return None
        if name in _OF_SHAPES and (value := graph.constant(call)) is not None and graph.fits(value, call):
            return graph.const(value)
        if name == "relax.where":
            return _choose(call, graph)
        if name == "relax.power":
            return _root(call, graph)
        return merge_clamps(call, graph)


def _choose(call: Call, graph: Dataflow) -> Expr | None:
    """Return the operand that a choice always takes."""
    condition, x, y = call.args
    decided = graph.uniform(condition)
    chosen = x if graph.same(x, y) or decided == True else y if decided == False else None  # noqa: E712 (numpy's)
    return chosen if chosen is not None and graph.same_type(chosen, call) else None


def _root(call: Call, graph: Dataflow) -> Expr | None:
    """Return a power of one half, or of minus one half, as a root."""
    x, exponent = call.args
    roots = {0.5: graph.op.sqrt, -0.5: graph.op.rsqrt}
    root = roots.get(float(value)) if (value := graph.uniform(exponent)) is not None else None
    return root(x) if root is not None and graph.same_type(x, call) and is_float(graph.dtype(call)) else None
