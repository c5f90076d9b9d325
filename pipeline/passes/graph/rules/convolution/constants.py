"""Read constants of a Relax graph without copies, through operators on constants, and count their readers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ..dataflow import Dataflow, dtype_of, shape_of, static_shape

#: dtypes whose weights the rules change; quantised ones stay
FLOATS = ("float16", "float32", "float64")
#: elements of a constant computed here at most: parameters of channels, not weights
_SMALL = 1 << 16
#: operators that keep the elements of a constant in place or move them, free of charge in numpy
_VIEWS: dict[str, Callable[[np.ndarray, relax.Call], np.ndarray]] = {
    "relax.permute_dims": lambda value, call: value.transpose(
        None if call.attrs.axes is None else list(call.attrs.axes)
    ),
    "relax.reshape": lambda value, call: value.reshape(static_shape(call)),
    "relax.expand_dims": lambda value, call: value.reshape(static_shape(call)),
    "relax.squeeze": lambda value, call: value.reshape(static_shape(call)),
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "relax.add": np.add, "relax.subtract": np.subtract, "relax.multiply": np.multiply, "relax.divide": np.divide,
    "relax.sqrt": np.sqrt, "relax.rsqrt": lambda x: 1 / np.sqrt(x), "relax.negative": np.negative, "relax.abs": np.abs,
    "relax.power": np.power, "relax.exp": np.exp, "relax.square": np.square, "relax.astype": lambda x: x,
}  # fmt: skip


def constant_value(expr: relax.Expr, graph: Dataflow) -> np.ndarray | None:
    """Return the value of an expression over constants; None for any other, and for dtypes that numpy lacks.

    Arithmetic is done on small constants alone. The array may be the constant's own memory: never write to it.
    """
    if not isinstance(expr, relax.Var):
        return graph.constant(expr)
    if graph not in _COMPUTED:
        _COMPUTED[graph] = _evaluate_all(graph)
    return _COMPUTED[graph].get(graph.variable(expr))


#: values of the variables of a graph that depend on constants alone
_COMPUTED: WeakKeyDictionary[Dataflow, dict[relax.Var, np.ndarray]] = WeakKeyDictionary()


def _evaluate_all(graph: Dataflow) -> dict[relax.Var, np.ndarray]:
    """Evaluate the constant expressions of a graph, in order: no recursion, which long chains would exhaust."""
    known: dict[relax.Var, np.ndarray] = {}
    for var, value in graph.bindings():
        array = graph.constant(value) if isinstance(value, GenericConst) else _evaluate(value, known, graph)
        if array is not None:
            known[var] = array
    return known


def _evaluate(call: relax.Expr, known: dict[relax.Var, np.ndarray], graph: Dataflow) -> np.ndarray | None:
    name = graph.operator(call)
    if name not in _VIEWS and name not in _ARITHMETIC:
        return None
    operands = []
    for each in call.args[: 1 if name in _VIEWS else None]:
        operand = known.get(graph.variable(each)) if isinstance(each, relax.Var) else graph.constant(each)
        if operand is None:
            return None
        operands.append(operand)
    shape = shape_of(call)
    if shape is None:
        return None
    if name in _VIEWS:
        return _VIEWS[name](operands[0], call)
    if dtype_of(call) not in FLOATS or max(math.prod(shape), *(each.size for each in operands)) > _SMALL:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(_ARITHMETIC[name](*operands)).astype(dtype_of(call))


def is_constant(expr: relax.Expr, graph: Dataflow) -> bool:
    """Tell whether an expression is a constant, or a view of one, of a float dtype."""
    return _origin(expr, graph) is not None and dtype_of(expr) in FLOATS


def _origin(expr: relax.Expr, graph: Dataflow) -> GenericConst | None:
    value = graph.value(expr)
    while (call := graph.call(value, *_VIEWS)) is not None:
        value = graph.value(call.args[0])
    return value if isinstance(value, GenericConst) else None


class ConstantReaders:
    """Count the calls that read each constant: one with several readers would be stored twice if one changed it."""

    def __init__(self, graph: Dataflow):
        self._graph = graph
        self._readers: Counter[tvm.runtime.Tensor] = Counter()
        for _, call in graph.calls():
            for each in call.args:
                origin = graph.value(each)
                if isinstance(origin, GenericConst):
                    self._readers[origin.value] += 1

    def owned(self, expr: relax.Expr) -> bool:
        """Tell whether one call alone reads this constant or view of a constant."""
        while True:
            if self._graph.uses(expr) != 1:
                return False
            call = self._graph.call(expr, *_VIEWS)
            if call is None:
                break
            expr = call.args[0]
        origin = self._graph.value(expr)
        return isinstance(origin, GenericConst) and self._readers[origin.value] == 1


def constant_of(value: np.ndarray, dtype: str) -> GenericConst | None:
    """Return a constant of the value rounded to `dtype`; None where that is not finite."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype, copy=False)
    return relax.const(rounded, dtype) if np.isfinite(rounded).all() else None
