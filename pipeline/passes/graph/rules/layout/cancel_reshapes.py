"""`cancel-reshapes`: compose reshapes, and move them through operators until they meet and cancel.

    reshape(squeeze(x))  →  reshape(x)        reshape(relu(reshape(x)))  →  relu(x)        flatten, expand_dims alike

Moved through element-wise operators (`sink.py`), only if fewer reshapes are left then. Operands have the shape of the
result, or are constants of one value, of the result's shape, or along last axes that the reshape keeps. Exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators import ELEMENTWISE, RESHAPES
from ..rule import Rule
from .sink import operands, sink

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from tvm.relax import Call, Expr, Var

    from ..dataflow import Dataflow

Shape = tuple[int, ...]


class CancelReshapes(Rule):
    """Remove reshapes that other reshapes undo."""

    name = "cancel-reshapes"
    summary = "compose reshapes, and move them through element-wise operators until they cancel"

    def rewrite(self, call: Call, graph: Dataflow) -> Expr | None:
        shape = graph.shape(call)
        if graph.operator(call) not in RESHAPES or shape is None:
            return None
        inner = graph.call(call.args[0], *RESHAPES)
        return _reshape(inner.args[0], shape, graph) if inner is not None else None

    def replacements(self, graph: Dataflow) -> Mapping[Var, Expr]:
        return dict(super().replacements(graph)) or sink(graph, _Reshapes())


def _reshape(x: Expr, shape: Shape, graph: Dataflow) -> Expr:
    return x if graph.shape(x) == shape else graph.op.reshape(x, shape)


class _Reshapes:
    """Movement of reshapes; a key is the shape that a value has before."""

    def key(self, call: Call, graph: Dataflow) -> Shape | None:
        return graph.shape(call.args[0]) if graph.operator(call) in RESHAPES and graph.shape(call) is not None else None

    def weight(self, shape: Shape) -> int:
        return 1

    def is_free(self, key: Shape, call: Call | None, graph: Dataflow) -> bool:
        return call is not None and graph.shape(call) == key

    def move(self, value: Expr, key: Shape, shape: Shape, graph: Dataflow) -> Expr:
        return graph.op.reshape(value, shape)

    def compose(self, value: Expr, key: Shape, call: Call, graph: Dataflow) -> Expr:
        return value if graph.shape(call) == key else graph.op.reshape(value, graph.shape(call))

    def through(self, call: Call, key: Shape, graph: Dataflow) -> Shape | None:
        shape = graph.static_shape(call)
        if graph.operator(call) not in ELEMENTWISE or any(graph.shape(each) != shape for each in operands(call, graph)):
            return None
        arrays = [array for each in graph.tensors(call) if (array := graph.constant(each)) is not None]
        return key if all(_undo_reshape(array, shape, key) is not None for array in arrays) else None

    def compute(self, call: Call, key: Shape, before: Mapping[Var, Expr], graph: Dataflow) -> Expr:
        shape = graph.static_shape(call)
        arrays = [(graph.constant(each), each) for each in graph.tensors(call)]
        return graph.like(
            call,
            [
                before[graph.variable(each)] if array is None else graph.const(_undo_reshape(array, shape, key))
                for array, each in arrays
            ],
        )


def _undo_reshape(array: np.ndarray, shape: Shape, key: Shape) -> np.ndarray | None:
    """Return a constant as it broadcasts to `key` instead of `shape`; None if it does not."""
    if array.size == 1:
        return array.reshape(())
    if array.shape == shape:
        return array.reshape(key)
    while array.ndim and array.shape[0] == 1:
        array = array[0]
    return array if key[-array.ndim :] == shape[-array.ndim :] and array.ndim <= len(key) else None
