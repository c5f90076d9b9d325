"""`cancel-transposes`: compose transposes, and move them through operators until they meet and cancel.

    transpose(transpose(x))  →  x        transpose⁻¹(relu(transpose(x)))  →  relu(x)

Moved through element-wise operators, reductions, softmax, concatenations, slices and padding, whose axes change places
(`sink.py`), only if fewer elements are transposed then. Exact, but for the order in which a reduction adds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..operators import ELEMENTWISE, REDUCTIONS
from ..rule import Rule
from .sink import sink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

_TRANSPOSE = "relax.permute_dims"
_SOFTMAX = frozenset({"relax.nn.softmax", "relax.nn.log_softmax"})
Axes = tuple[int, ...]


class CancelTransposes(Rule):
    """Remove transposes that other transposes undo."""

    name = "cancel-transposes"
    summary = "compose transposes, and move them through operators until they cancel"

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        inner = graph.call(call.args[0], _TRANSPOSE) if graph.operator(call) == _TRANSPOSE else None
        if inner is None:
            return None
        return _transpose(inner.args[0], _compose(graph.axes(inner), graph.axes(call)), graph)

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        return dict(super().replacements(graph)) or sink(graph, _Transposes())


def _compose(first: Axes, second: Axes) -> Axes:
    """Return the axes of a transpose by `first`, then by `second`."""
    return tuple(first[axis] for axis in second)


def _inverse(axes: Axes) -> Axes:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def _transpose(x: Expr, axes: Axes, graph: Dataflow) -> Expr:
    return x if list(axes) == sorted(axes) else graph.op.permute_dims(x, list(axes))


class _Transposes:
    """Movement of transposes; a key is the axes by which a value is transposed."""

    def key(self, call: Call, graph: Dataflow) -> Axes | None:
        return graph.axes(call) if graph.operator(call) == _TRANSPOSE and graph.shape(call) is not None else None

    def weight(self, shape: tuple[int, ...]) -> int:
        return math.prod(shape)

    def is_free(self, key: Axes, call: Call | None, graph: Dataflow) -> bool:
        axes = _compose(key, graph.axes(call)) if call is not None else key
        return list(axes) == sorted(axes)

    def move(self, value: Expr, key: Axes, shape: Axes, graph: Dataflow) -> Expr:
        return _transpose(value, key, graph)

    def compose(self, value: Expr, key: Axes, call: Call, graph: Dataflow) -> Expr:
        return _transpose(value, _compose(key, graph.axes(call)), graph)

    def through(self, call: Call, key: Axes, graph: Dataflow) -> Axes | None:
        name = graph.operator(call)
        if name in ELEMENTWISE or name == "relax.concat":
            return key if len(graph.static_shape(call)) == len(key) and _constants_fit(call, len(key), graph) else None
        if name in _SOFTMAX or name in ("relax.nn.pad", "relax.strided_slice"):
            return key
        if name in REDUCTIONS:
            if call.attrs.keepdims:
                return key
            kept = [axis for number, axis in enumerate(key) if number not in graph.axes(call)]
            return tuple(sorted(kept).index(axis) for axis in kept)
        return None

    def compute(self, call: Call, key: Axes, before: Mapping[Var, Expr], graph: Dataflow) -> Expr:
        name, op = graph.operator(call), graph.op
        if name in ELEMENTWISE:
            return graph.like(call, [_undo_transpose(each, key, before, graph) for each in graph.tensors(call)])
        if name == "relax.concat":
            fields = [_undo_transpose(each, key, before, graph) for each in graph.fields(call.args[0])]
            return op.concat(fields, key[int(call.attrs.axis or 0) % len(key)])
        x = before[graph.variable(call.args[0])]
        if name in _SOFTMAX:
            return getattr(op.nn, name.removeprefix("relax.nn."))(x, key[int(call.attrs.axis) % len(key)])
        if name == "relax.nn.pad":
            widths = list(map(int, call.attrs.pad_width))
            moved = [widths[2 * place + side] for place in _inverse(key) for side in (0, 1)]
            return op.nn.pad(x, moved, call.attrs.pad_mode, call.attrs.pad_value)
        if name == "relax.strided_slice":
            axes = [key[int(axis) % len(key)] for axis in graph.fields(call.args[1])]
            limits = [[int(each) for each in graph.fields(argument)] for argument in call.args[2:]]
            return op.strided_slice(x, axes, *limits, assume_inbound=bool(call.attrs.assume_inbound))
        axes = sorted(key[axis] for axis in graph.axes(call))
        return getattr(op, name.removeprefix("relax."))(x, axes, bool(call.attrs.keepdims))


def _constants_fit(call: Call, rank: int, graph: Dataflow) -> bool:
    """Return whether each constant operand can be transposed: its rank is that of the result, or less."""
    flat = [each for argument in call.args for each in (graph.fields(argument) or (argument,))]
    return all(len(graph.shape(each) or ()) <= rank for each in flat if graph.constant(each) is not None)


def _undo_transpose(expr: Expr, key: Axes, before: Mapping[Var, Expr], graph: Dataflow) -> Expr:
    """Return an operand before it was transposed; a constant is transposed back."""
    array = graph.constant(expr)
    if array is None:
        return before[graph.variable(expr)]
    if array.size == 1:
        return expr
    wide = array.reshape((1,) * (len(key) - array.ndim) + array.shape)
    return graph.const(wide.transpose(_inverse(key)))
