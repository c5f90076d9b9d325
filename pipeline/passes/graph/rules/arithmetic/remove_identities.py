"""`remove-identities`: drop operators that return their operand.

    x + 0    x - 0    x · 1    x / 1    x ** 1    x and true    x or false    clip without bounds    cast to its own dtype
    reshape, transpose, slice, pad, tile, repeat, broadcast, concat, split to itself    dropout    sums over no extent

Legal where the result has the shape and dtype of the operand: a constant that broadcasts it stays. `x + 0` is the one
inexact bit: -0.0 + 0.0 is 0.0, which equals -0.0. A transpose that moves axes of extent 1 alone is a reshape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators import REDUCTIONS, RESHAPES, relax_operators
from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

#: operator, value of the neutral constant, and its places among the operands
_NEUTRAL = {
    "relax.add": (0, (0, 1)),
    "relax.subtract": (0, (1,)),
    "relax.multiply": (1, (0, 1)),
    "relax.divide": (1, (1,)),
    "relax.power": (1, (1,)),
    "relax.logical_and": (True, (0, 1)),
    "relax.logical_or": (False, (0, 1)),
    "relax.logical_xor": (False, (0, 1)),
    "relax.bitwise_or": (0, (0, 1)),
    "relax.bitwise_xor": (0, (0, 1)),
    "relax.left_shift": (0, (1,)),
    "relax.right_shift": (0, (1,)),
}
#: operators that keep the order of the elements: with equal shapes, they are identities
_IN_ORDER = RESHAPES | relax_operators("broadcast_to strided_slice tile repeat split")
_TRANSPOSE = "relax.permute_dims"


class RemoveIdentities(Rule):
    """Replace a call by its operand if both are equal."""

    name = "remove-identities"
    summary = "drop operators that return their operand: x + 0, x · 1, casts, reshapes and slices to the same"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        found = dict(super().replacements(graph))
        for var, item, producer in graph.items():
            name = graph.operator(producer)
            if item.index == 0 and (
                name == "relax.nn.dropout" or (name == "relax.split" and len(producer.ty.fields) == 1)
            ):
                found[var] = producer.args[0]
        return found

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        name, shape = graph.operator(call), graph.shape(call)
        if name in _NEUTRAL:
            return _neutral(call, graph)
        if name == "relax.concat" and len(parts := graph.fields(call.args[0])) == 1:
            return parts[0]
        before = graph.shape(call.args[0]) if call.args else None
        if before is None or shape is None:
            return None
        x = call.args[0]
        same = graph.same_type(x, call)
        if name in _IN_ORDER or name == "relax.astype":
            return x if same and not _reverses(call, graph) else None
        if name == "relax.nn.pad":
            return None if any(call.attrs.pad_width) else x
        if name == "relax.clip":
            low, high = (float(each.value) for each in call.args[1:])
            return x if low == float("-inf") and high == float("inf") else None
        if name == _TRANSPOSE:
            order = [axis for axis in graph.axes(call) if before[axis] > 1]
            if order == sorted(order):
                return x if same else graph.op.reshape(x, shape)
        if name in REDUCTIONS and all(before[axis] == 1 for axis in graph.axes(call)):
            return x if same else graph.op.reshape(x, shape)
        return None


def _neutral(call: Call, graph: Dataflow) -> Expr | None:
    """Return the operand next to a neutral constant."""
    neutral, places = _NEUTRAL[graph.operator(call)]
    for place in places:
        value, other = graph.uniform(call.args[place]), call.args[1 - place]
        if value is not None and value == neutral and graph.same_type(other, call):
            return other
    return None


def _reverses(call: Call, graph: Dataflow) -> bool:
    """Return whether a slice runs backwards."""
    if graph.operator(call) != "relax.strided_slice" or len(call.args) < 5:
        return False
    return any(int(step) < 0 for step in graph.value(call.args[4]).fields)
