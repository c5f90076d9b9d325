"""Move a scale per channel to the weights directly before or behind it, past sums."""

from __future__ import annotations

import numpy as np
from tvm import relax

from ..dataflow import Dataflow, dtype_of, operator_of, shape_of
from .channels import Channels
from .constants import constant_of
from .linear import Linear

#: new values of variables: together they move a scale
Edits = dict[relax.Var, relax.Expr]
_SUMS = ("relax.add", "relax.subtract")
#: sums between a scale and the weights that take it, at most
_DEPTH = 32
#: scales to divide a constant by; smaller or larger ones lose digits
_LEAST, _MOST = 1e-3, 1e3


def move_scale(var: relax.Var, operand: relax.Expr, scale: Channels, graph: Dataflow) -> Edits | None:
    """Return edits that make `var`, the scaled operand, the operand itself; None if no weights take the scale."""
    edits = _backward(operand, scale, graph, _DEPTH) or _forward(var, scale, graph, _DEPTH)
    return {**edits, var: operand} if edits else None


def _backward(expr: relax.Expr, scale: Channels, graph: Dataflow, depth: int) -> Edits | None:
    """Return edits that scale a value by the weights before it."""
    call = graph.value(expr)
    if depth == 0 or graph.uses(expr) != 1 or not isinstance(call, relax.Call):
        return None
    new = _scaled_weight(call, scale, graph, backward=True)
    if new is not None or operator_of(call) not in _SUMS:
        return None if new is None else {graph.variable(expr): new}
    edits: Edits = {}
    terms = list(call.args)
    for place, term in enumerate(call.args):
        constant = _scaled_constant(term, call, scale, graph, inverse=False)
        if constant is not None:
            terms[place] = constant
            continue
        inner = _backward(term, scale, graph, depth - 1) if shape_of(term) == shape_of(call) else None
        if inner is None or inner.keys() & edits.keys():
            return None
        edits |= inner
    return {**edits, graph.variable(expr): graph.with_arguments(call, terms)} if edits else None


def _forward(var: relax.Var, scale: Channels, graph: Dataflow, depth: int) -> Edits | None:
    """Return edits that let every reader of `var` take the scale into its weight."""
    readers, edits = graph.users(var), Edits()
    if depth == 0 or len(readers) != graph.uses(var):
        return None
    for reader in readers:
        call = graph.value(reader)
        inner = _reader(reader, call, var, scale, graph, depth) if isinstance(call, relax.Call) else None
        if inner is None or inner.keys() & edits.keys():
            return None
        edits |= inner
    return edits


def _reader(
    reader: relax.Var, call: relax.Call, var: relax.Var, scale: Channels, graph: Dataflow, depth: int
) -> Edits | None:
    new = _scaled_weight(call, scale, graph, backward=False)
    if new is not None or operator_of(call) not in _SUMS or shape_of(var) != shape_of(call):
        return None if new is None else {reader: new}
    terms = [
        each if graph.same(each, var) else _scaled_constant(each, call, scale, graph, inverse=True)
        for each in call.args
    ]
    inner = None if None in terms else _forward(reader, scale, graph, depth - 1)
    return {**inner, reader: graph.with_arguments(call, terms)} if inner else None


def _scaled_weight(call: relax.Call, scale: Channels, graph: Dataflow, *, backward: bool) -> relax.Call | None:
    """Return a linear call whose weight, which nothing else reads, takes the scale; None for any other."""
    linear = Linear.of(call, graph)
    if linear is None or not graph.is_owned(linear.weight):
        return None
    return linear.scaled(scale, graph, backward=backward)


def _scaled_constant(
    expr: relax.Expr, call: relax.Call, scale: Channels, graph: Dataflow, *, inverse: bool
) -> relax.Expr | None:
    """Return a constant term of `call`, scaled; None if it is computed, or would grow beyond both operands."""
    value = graph.constant(expr)
    if value is None:
        return None
    if not value.any():
        return expr  # zero scaled, which stays one number
    factor = scale.array(len(shape_of(call) or ()))
    if inverse and not ((np.abs(factor) >= _LEAST) & (np.abs(factor) <= _MOST)).all():
        return None
    new = value / factor if inverse else value * factor
    return None if new.size > max(value.size, factor.size) else constant_of(new, dtype_of(call))
