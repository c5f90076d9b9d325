"""Repeat operators that treat each channel by itself on parts of the channels."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..dataflow import Dataflow, shape_of
from ..operators import AVERAGE_POOLS, MAX_POOLS, UNARY
from .channels import STEPS

#: operators that treat each plane by itself
PLANEWISE = MAX_POOLS | AVERAGE_POOLS | {"relax.image.resize2d"}
BINARY = (*(name for name in STEPS if name != "relax.negative"), "relax.maximum", "relax.minimum")


def constant_term(call: relax.Call, graph: Dataflow) -> tuple[int, np.ndarray] | None:
    """Return the place and value of the constant operand that keeps the other one's shape."""
    for place in (1, 0):
        value = graph.constant(call.args[place])
        if value is not None and shape_of(call.args[1 - place]) == shape_of(call):
            return place, value
    return None


def along(constant: np.ndarray, axis: int, rank: int) -> int | None:
    """Return the constant's own axis for `axis` of a value of `rank`; None if it broadcasts along it."""
    own = axis - rank + constant.ndim
    return own if own >= 0 and constant.shape[own] > 1 else None


def restrict_channels(
    call: relax.Call, part: relax.Expr, axis: int, start: int, stop: int, graph: Dataflow
) -> relax.Call | None:
    """Return a call of the channels `start` to `stop`, given its operand's part; None if it mixes channels."""
    name = graph.operator(call)
    if name in UNARY:
        return graph.like(call, [part])
    if name in PLANEWISE:
        layout = str(call.attrs.layout)
        return graph.like(call, [part]) if layout.isalpha() and layout[axis] == "C" else None
    term = constant_term(call, graph) if name in BINARY else None
    if term is None:
        return None
    place, constant = term
    own = along(constant, axis, len(shape_of(call) or ()))
    if own is not None:
        constant = np.ascontiguousarray(np.take(constant, range(start, stop), own))
    return graph.like(call, [part, graph.const(constant)][:: 1 if place else -1])
