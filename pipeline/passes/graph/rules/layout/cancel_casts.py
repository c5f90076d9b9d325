"""`cancel-casts`: drop casts whose way there and back keeps every value.

    float16(float32(x))  →  x, if x is float16        float32(int32(x))  →  float32(x), if x is int8        x ≠ 0  →  x, for float(x), x boolean

The dtype between must hold every value of the first: fewer bits of mantissa and exponent, or whole numbers within both
ranges. A cast is looked for through reshapes and transposes that nothing else reads, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..dataflow import Dataflow

_CAST = "relax.astype"
#: bits of mantissa, the leading one counted, and largest exponent
_FLOATS = {"float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "float64": (53, 1023)}


class CancelCasts(Rule):
    """Replace casts of casts by one, or none."""

    name = "cancel-casts"
    summary = "drop casts whose way there and back keeps every value"

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        name = graph.operator(call)
        if name in ("relax.equal", "relax.not_equal"):
            return _compare(name, call, graph)
        if name != _CAST:
            return None
        moves, inner = _behind_moves(call.args[0], graph)
        if inner is None or not holds(graph.dtype(inner), graph.dtype(inner.args[0])):
            return None
        result = inner.args[0]
        for move in reversed(moves):
            result = graph.like(move, (result,))
        return result if graph.dtype(inner.args[0]) == graph.dtype(call) else graph.op.astype(result, graph.dtype(call))


def _behind_moves(expr: Expr, graph: Dataflow) -> tuple[list[Call], Call | None]:
    """Return the reshapes and transposes above a value, and the cast above these, if there is one."""
    from ..dataflow import MOVES

    moves = []
    while graph.operator(expr) in MOVES and graph.uses(expr) == 1:
        moves.append(graph.value(expr))
        expr = graph.value(expr).args[0]
    return moves, graph.call(expr, _CAST)


def _compare(name: str, call: Call, graph: Dataflow) -> Expr | None:
    """Return the boolean whose cast is compared with zero, or its negation."""
    cast = graph.call(call.args[0], _CAST)
    if cast is None or graph.dtype(cast.args[0]) != "bool" or graph.uniform(call.args[1]) != 0:
        return None
    if graph.shape(cast) != graph.shape(call):
        return None
    return cast.args[0] if name == "relax.not_equal" else graph.op.logical_not(cast.args[0])


def holds(wide: str, narrow: str) -> bool:
    """Return whether a dtype holds every value of another one exactly."""
    if wide == narrow:
        return True
    if narrow == "bool":
        return wide in _FLOATS or _bits(wide) is not None
    if narrow in _FLOATS:
        return wide in _FLOATS and all(w >= n for w, n in zip(_FLOATS[wide], _FLOATS[narrow]))
    small = _bits(narrow)
    if small is None:
        return False
    signed, bits = small
    if wide in _FLOATS:
        return bits - signed <= min(_FLOATS[wide])
    large = _bits(wide)
    return large is not None and large[0] >= signed and large[1] - large[0] >= bits - signed


def _bits(dtype: str) -> tuple[bool, int] | None:
    """Return sign and width of a whole-number dtype."""
    found = re.fullmatch(r"(u?)int(\d+)", dtype)
    return (not found[1], int(found[2])) if found else None
