"""`share-constants`: hold equal constants once, and constants of repeated values small.

    x · full((64, 64), 2.0)  →  x · 2.0        two equal weights  →  one

A constant that repeats its values along an axis keeps one of them there, where it is an operand of an element-wise
operator and the result keeps its shape. Exact: values are compared as bytes.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from ..operators import ELEMENTWISE
from ..rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

#: elements compared first: weights of one shape differ there, and need no digest
_SAMPLE = 64


class ShareConstants(Rule):
    """Replace constants by equal ones that take less memory."""

    name = "share-constants"
    summary = "hold equal constants once, and those of repeated values small"

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        import tvm_ffi
        from tvm.ir import GenericConst

        found = dict(super().replacements(graph))
        if found:
            return found
        shared = {each: one for each, one in equal_constants(graph).items() if graph.shape(each)}
        for var, call in graph.calls() if shared else ():
            new = tvm_ffi.structural_map(call, (GenericConst, lambda each: shared.get(each, each)))
            if not new.same_as(call):
                found[var] = new
        return found

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        shape = graph.shape(call)
        if graph.operator(call) not in ELEMENTWISE or shape is None:
            return None
        operands = graph.tensors(call)
        shapes = [graph.shape(each) for each in operands]
        for number, each in enumerate(operands):
            if graph.is_variable(each) or np.prod(shapes[number] or (), dtype=int) <= 1:
                continue
            small = _drop_repeats(graph.constant(each), shapes, number, shape)
            if small is not None:
                return graph.like(call, [*operands[:number], graph.const(small), *operands[number + 1 :]])
        return None


def _drop_repeats(
    array: np.ndarray | None, shapes: list[tuple[int, ...] | None], number: int, shape: tuple[int, ...]
) -> np.ndarray | None:
    """Return a constant with one value for each axis that repeats it; None if the result would lose its shape."""
    if array is None or array.dtype.kind not in "fiub":
        return None
    small = array
    for axis in range(array.ndim):
        if small.shape[axis] > 1:
            first, second = small.take([0], axis), small.take([1], axis)  # weights differ here already
            if (_bytes(second) == _bytes(first)).all() and (_bytes(small) == _bytes(first)).all():
                small = first
    if small.size == 1:
        small = small.reshape(())
    others = [each for place, each in enumerate(shapes) if place != number and each is not None]
    if small.size == array.size or len(others) < len(shapes) - 1 or np.broadcast_shapes(small.shape, *others) != shape:
        return None
    return small


def _bytes(array: np.ndarray) -> np.ndarray:
    """View values as whole numbers, so that NaN equals itself and 0.0 is not -0.0."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def equal_constants(graph: Dataflow) -> dict[Expr, Expr]:
    """Return for each constant that repeats another one's bytes the first of these."""
    groups: dict[tuple[object, ...], list[tuple[Expr, np.ndarray]]] = {}
    for each in graph.constants():
        array = graph.constant(each)
        if array is not None:
            sample = array.reshape(-1)[:_SAMPLE].tobytes()
            groups.setdefault((array.shape, graph.dtype(each), sample), []).append((each, array))
    shared: dict[Expr, Expr] = {}
    for group in groups.values():
        first: dict[bytes, Expr] = {}
        for each, array in group if len(group) > 1 else ():
            one = first.setdefault(blake2b(array.tobytes()).digest(), each)
            if not one.same_as(each):
                shared[each] = one
    return shared
