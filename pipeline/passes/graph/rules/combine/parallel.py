"""Combine parallel values of a graph into one, together with equal operators behind them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from tvm import relax

from ..convolution.geometry import Geometry
from ..convolution.linear import Linear
from ..convolution.per_channel import BINARY, along, constant_term
from ..dataflow import Dataflow, shape_of, static_shape
from ..operators import UNARY


def combine_parallel(graph: Dataflow, *operators: str) -> dict[relax.Var, relax.Expr]:
    """Return calls that differ in unshared weights alone as parts of one call, whose weight holds theirs side by side."""
    groups: dict[tuple[relax.Var, Geometry | None, tuple[int, ...], str], list[tuple[relax.Var, Linear]]] = {}
    for var, call in graph.calls(*operators):
        linear = Linear.of(call, graph)
        if linear is None or not linear.weight_last or not isinstance(linear.data, relax.Var):
            continue
        if graph.is_owned(linear.weight) and (linear.geometry is None or linear.geometry.groups == 1):
            shape = static_shape(linear.weight)
            others = (*shape[: linear.outer], *shape[linear.outer + 1 :])
            key = graph.variable(linear.data), linear.geometry, others, graph.dtype(linear.weight)
            groups.setdefault(key, []).append((var, linear))
    found: dict[relax.Var, relax.Expr] = {}
    for (_, _, _, dtype), branches in groups.items():
        if len(branches) > 1:
            first = branches[0][1]
            weights = [graph.constant(linear.weight) for _, linear in branches]
            combined = first.with_weight(relax.const(np.concatenate(weights, first.outer), dtype))
            found |= divide(combined, [var for var, _ in branches], first.given, graph)
    return found


def divide(
    combined: relax.Expr, branches: Sequence[relax.Var], axis: int, graph: Dataflow
) -> dict[relax.Var, relax.Expr]:
    """Return the values of branches as parts of `combined` along `axis`, which holds them in this order.

    Operators behind that all branches share, up to their constants, are applied before the division.
    """
    extents = [static_shape(branch)[axis] for branch in branches]
    tails = list(branches)
    while True:
        after = [graph.users(tail) for tail in tails]
        if any(len(users) != 1 or graph.uses(tail) != 1 for users, tail in zip(after, tails)):
            break
        calls = [graph.value(users[0]) for users in after]
        joined = _join(combined, calls, tails, extents, axis, graph)
        if joined is None:
            break
        combined, tails = joined, [users[0] for users in after]
    parts = relax.op.split(combined, list(accumulate(extents[:-1])), axis)
    return {tail: relax.TupleGetItem(parts, number) for number, tail in enumerate(tails)}


def _join(
    combined: relax.Expr, calls: Sequence[relax.Expr], tails: Sequence[relax.Var], extents: Sequence[int], axis: int,
    graph: Dataflow,
) -> relax.Expr | None:  # fmt: skip
    """Return one call on all branches in the place of one each; None if they differ."""
    import tvm_ffi

    names = {graph.operator(call) for call in calls}
    name = names.pop()
    if names:
        return None
    first = calls[0]
    if name in UNARY:
        alike = all(tvm_ffi.structural_equal(call.attrs, first.attrs) for call in calls[1:])
        bounds = all(tvm_ffi.structural_equal(list(call.args[1:]), list(first.args[1:])) for call in calls[1:])
        return graph.like(first, [combined]) if alike and bounds else None
    if name not in BINARY:
        return None
    terms = [term for call in calls if (term := constant_term(call, graph)) is not None]
    if len(terms) < len(calls) or len({term[0] for term in terms}) > 1:
        return None
    constant = _concat_constants([term[1] for term in terms], extents, axis, len(shape_of(first) or ()))
    if constant is None:
        return None
    return graph.like(first, [combined, graph.const(constant)][:: 1 if terms[0][0] else -1])


def _concat_constants(
    constants: Sequence[np.ndarray], extents: Sequence[int], axis: int, rank: int
) -> np.ndarray | None:
    """Return the constants of branches side by side; None if they vary along other axes in different ways."""
    if all(constant.size == 1 and constant.reshape(()) == constants[0].reshape(()) for constant in constants):
        return constants[0]
    full = []
    for constant, extent in zip(constants, extents):
        shape = [1] * (rank - constant.ndim) + list(constant.shape)
        if any(size > 1 for number, size in enumerate(shape) if number != axis):
            return None
        wide = constant.reshape(shape)
        full.append(np.repeat(wide, extent, axis) if along(constant, axis, rank) is None else wide)
    joined = np.concatenate(full, axis)
    return joined.reshape(joined.shape[axis:])  # leading axes of extent 1 broadcast by themselves
