"""`simplify-expressions`: algebra and logic on one operator and its operands.

    -(-x) = x    |−x| = |x|    relu(exp x) = exp x    ⌊⌈x⌉⌋ = ⌈x⌉    x − (−y) = x + y    x / 4 = x · 0.25    x ** 2 = x²
    clip(relu x) = one clip    ¬¬x = x    ¬(x = y) = x ≠ y    where(¬c, x, y) = where(c, y, x)    where(c, x, x) = x
    shape(x)[0] = 3, and what is computed from such numbers

Exact, but for the sign of zero, √(−∞), which `x ** 0.5` has not, and NaN, of which relu and clip may make a bound. Only for whole numbers: ¬(x < y) = x ≥ y and its kin
(with NaN both are false), x − x = 0 and x · 0 = 0 (NaN and ∞ give NaN). Divisions become products for powers of two
alone, whose reciprocals are exact. Left out, as inexact: log(exp x), exp(log x), √x², x / x.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..operators import LATTICE, NEVER_NEGATIVE, is_float, is_integer, relax_operators
from ..rule import Rule
from .clamps import merge_clamps

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..dataflow import Dataflow


#: f(f(x)) = f(x)
_IDEMPOTENT = relax_operators("abs sign nn.relu nn.relu6 ceil floor round trunc")
_WHOLE = relax_operators("ceil floor round trunc")
#: operators that importers write out on extents and positions, which are known
_OF_SHAPES = relax_operators("shape_to_tensor take where add less")
_EVEN = relax_operators("abs square cos cosh")
#: the opposite comparison, where all values compare
_OPPOSITES = {
    "relax.less": "greater_equal",
    "relax.greater_equal": "less",
    "relax.greater": "less_equal",
    "relax.less_equal": "greater",
}
_EQUALITIES = {"relax.equal": "not_equal", "relax.not_equal": "equal"}


class SimplifyExpressions(Rule):
    """Replace an expression by one of fewer or cheaper operators."""

    name = "simplify-expressions"
    summary = "algebra and logic: double negation, chains of clips, comparisons negated, powers, choices without choice"

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        name = graph.operator(call)
        if not name or graph.shape(call) is None:
            return None
        if name in _OF_SHAPES and (value := graph.constant(call)) is not None and graph.fits(value, call):
            return graph.const(value)
        for simpler in (_simplify_unary, _simplify_logic, merge_clamps, _simplify_binary, _simplify_constants):
            if (new := simpler(name, call, graph)) is not None:
                return new
        return None


def _simplify_unary(name: str, call: Call, graph: Dataflow) -> Expr | None:
    """Simplify an operator with one operand."""
    if len(graph.tensors(call)) != 1:
        return None
    x = call.args[0]
    inner = graph.operator(x)
    if name == inner and name in ("relax.negative", "relax.logical_not", "relax.bitwise_not"):
        return graph.value(x).args[0]
    if (name == inner and name in _IDEMPOTENT) or (name in _WHOLE and (inner in _WHOLE or is_integer(graph.dtype(x)))):
        return x
    if name in ("relax.nn.relu", "relax.abs") and inner in NEVER_NEGATIVE:
        return x
    if name in _EVEN and inner in ("relax.negative", "relax.abs"):
        return graph.like(call, graph.value(x).args)
    return None


def _simplify_logic(name: str, call: Call, graph: Dataflow) -> Expr | None:
    """Simplify negated comparisons and choices."""
    if name == "relax.logical_not":
        inner, compared = graph.operator(call.args[0]), graph.value(call.args[0])
        opposite = _EQUALITIES.get(inner)
        if inner in _OPPOSITES and not is_float(graph.dtype(compared.args[0])):
            opposite = _OPPOSITES[inner]
        return getattr(graph.op, opposite)(*compared.args) if opposite else None
    if name != "relax.where":
        return None
    condition, x, y = call.args
    if (negated := graph.call(condition, "relax.logical_not")) is not None:
        return graph.op.where(negated.args[0], y, x)
    decided = graph.uniform(condition)
    chosen = x if graph.same(x, y) or decided == True else y if decided == False else None  # noqa: E712 (numpy's)
    return chosen if chosen is not None and graph.same_type(chosen, call) else None


def _simplify_binary(name: str, call: Call, graph: Dataflow) -> Expr | None:
    """Simplify an operator by the negations, or the equality, of its operands."""
    if len(call.args) != 2:
        return None
    x, y = call.args
    if name in LATTICE and graph.same(x, y):
        return x
    if name == "relax.subtract" and graph.same(x, y) and is_integer(graph.dtype(call)):
        return graph.op.zeros(graph.shape(call), graph.dtype(call))
    minus_x, minus_y = (graph.call(each, "relax.negative") for each in (x, y))
    if minus_x is not None and minus_y is not None and name in ("relax.multiply", "relax.divide"):
        return graph.like(call, (minus_x.args[0], minus_y.args[0]))
    if minus_y is not None and name == "relax.add":
        return graph.op.subtract(x, minus_y.args[0])
    if minus_y is not None and name == "relax.subtract":
        return graph.op.add(x, minus_y.args[0])
    if minus_x is not None and name == "relax.add":
        return graph.op.subtract(y, minus_x.args[0])
    return None


def _simplify_constants(name: str, call: Call, graph: Dataflow) -> Expr | None:
    """Simplify an operator by the constant among its operands."""
    if len(call.args) != 2:
        return None
    x, y = call.args
    if name in ("relax.multiply", "relax.subtract") and graph.constant(x) is not None:
        left = graph.uniform(x)
        if name == "relax.subtract":
            return graph.op.negative(y) if left == 0 and graph.same_type(y, call) else None
        x, y = y, x
    value = graph.uniform(y)
    dtype = graph.dtype(call)
    if name == "relax.multiply" and value == 0 and is_integer(dtype):
        return graph.op.zeros(graph.shape(call), dtype)
    if not graph.same_type(x, call) or not is_float(dtype):
        return None
    if name in ("relax.multiply", "relax.divide") and value == -1:
        return graph.op.negative(x)
    if name == "relax.divide" and (divisor := graph.constant(y)) is not None and _is_power_of_two(divisor):
        return graph.op.multiply(x, graph.const((1 / divisor).astype(divisor.dtype)))
    if name == "relax.power" and value is not None:
        powers = {2.0: graph.op.square, 0.5: graph.op.sqrt, -0.5: graph.op.rsqrt}
        return powers[float(value)](x) if float(value) in powers else None
    return None


def _is_power_of_two(array: np.ndarray) -> bool:
    """Return whether all values, and their reciprocals, are normal powers of two."""
    if array.dtype.kind != "f":  # bfloat16 is of a kind of its own
        return False
    mantissa, exponent = np.frexp(array)
    least, most = np.finfo(array.dtype).minexp, np.finfo(array.dtype).maxexp
    return bool(((np.abs(mantissa) == 0.5) & (exponent - 1 > least) & (1 - exponent > least) & (exponent < most)).all())
