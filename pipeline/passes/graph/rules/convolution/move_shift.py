"""Move a shift per channel from before convolutions and dense layers to behind them."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax

from ..dataflow import Dataflow, dtype_of, shape_of
from .channels import Channels
from .constants import constant_of
from .linear import Linear


def move_shift(
    var: relax.Var, operand: relax.Expr, shift: Channels, graph: Dataflow
) -> dict[relax.Var, relax.Expr] | None:
    """Return edits that add the shift behind every reader of `var`, to its bias if it has one; None if one cannot."""
    readers = graph.users(var)
    if not readers or len(readers) != graph.uses(var):
        return None
    edits: dict[relax.Var, relax.Expr] = {var: operand}
    grown = 0
    for reader in readers:
        call = graph.value(reader)
        linear = Linear.of(call, graph) if isinstance(call, relax.Call) else None
        if linear is None:
            return None
        bias = _bias_behind(reader, graph)
        if bias is None:
            grown += math.prod(shape_of(call) or ())
            if grown > math.prod(shape_of(var) or ()):
                return None
        behind = linear.shifted(shift, graph)
        if behind is None:
            return None
        target, term, value = (reader, call, np.zeros(())) if bias is None else bias
        constant = constant_of(behind + value, dtype_of(call))
        if constant is None or (bias is not None and (behind + value).size > max(behind.size, value.size)):
            return None
        edits[target] = relax.op.add(term, constant)
    return edits


def _bias_behind(var: relax.Var, graph: Dataflow) -> tuple[relax.Var, relax.Var, np.ndarray] | None:
    """Return the sum with a constant that alone reads a value, that value, and the constant; None if there is none."""
    users = graph.users(var)
    call = graph.call(users[0], "relax.add") if len(users) == 1 and graph.uses(var) == 1 else None
    if call is None:
        return None
    for term in call.args:
        value = graph.constant(term)
        if value is not None and shape_of(call) == shape_of(var):
            return users[0], var, value.astype("float64")
    return None
