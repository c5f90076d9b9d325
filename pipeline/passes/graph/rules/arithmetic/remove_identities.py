"""`remove-identities`: drop operators that return their operand.

    x + 0    x - 0    x · 1    x / 1    x ** 1    cast to its own dtype    reshape, transpose, slice to itself

Legal where the result has the shape and dtype of the operand: a constant that broadcasts it stays.
`x + 0` is the one inexact bit: -0.0 + 0.0 is 0.0, which equals -0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..rule import Rule

if TYPE_CHECKING:
    from tvm.relax import Call, Expr

    from ..dataflow import Dataflow

#: operator, value of the neutral constant, and its places among the operands
_NEUTRAL = {
    "relax.add": (0, (0, 1)),
    "relax.subtract": (0, (1,)),
    "relax.multiply": (1, (0, 1)),
    "relax.divide": (1, (1,)),
    "relax.power": (1, (1,)),
}
#: operators that only place elements: equal shapes do not make them identities, so each has a test
_CAST, _RESHAPE, _TRANSPOSE = "relax.astype", "relax.reshape", "relax.permute_dims"


class RemoveIdentities(Rule):
    """Replace a call by its operand where both are equal."""

    name = "remove-identities"
    summary = "drop operators that return their operand: x + 0, x · 1, casts and reshapes to the same"

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        from ..dataflow import dtype_of, operator_of, shape_of

        name = operator_of(call)
        shape = shape_of(call)
        if name in _NEUTRAL:
            neutral, places = _NEUTRAL[name]
            for place in places:
                constant, other = graph.constant(call.args[place]), call.args[1 - place]
                if constant is not None and (constant == neutral).all() and shape_of(other) == shape:
                    return other
        elif name == _CAST and dtype_of(call.args[0]) == dtype_of(call):
            return call.args[0]
        elif name == _RESHAPE and shape_of(call.args[0]) == shape:
            return call.args[0]
        elif name == _TRANSPOSE and shape is not None:
            axes = call.attrs.axes
            order = [int(axis) % len(shape) for axis in axes] if axes is not None else list(reversed(range(len(shape))))
            if order == sorted(order):
                return call.args[0]
        return None
