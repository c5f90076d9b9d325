"""Read constants of a Relax graph without copies, through operators on constants, and count their readers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst

from ..dataflow import Dataflow, dtype_of, shape_of

#: dtypes whose weights the rules change; quantised ones stay
FLOATS = ("float16", "float32", "float64")
#: elements of a constant computed here at most: parameters of channels, not weights
_SMALL = 1 << 16
#: operators that keep the elements of a constant in place or move them, free of charge in numpy
_VIEWS: dict[str, Callable[[np.ndarray, relax.Call], np.ndarray]] = {
    "relax.permute_dims": lambda value, call: value.transpose(None if call.attrs.axes is None else list(call.attrs.axes)),
    "relax.reshape": lambda value, call: value.reshape(shape_of(call)),
    "relax.expand_dims": lambda value, call: value.reshape(shape_of(call)),
    "relax.squeeze": lambda value, call: value.reshape(shape_of(call)),
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
    value = graph.value(expr)
    if isinstance(value, GenericConst):
        return graph.constant(value)
    if not isinstance(value, relax.Call) or shape_of(value) is None:
        return None
    name = graph.operator(value)
    if name in _VIEWS:
        operand = constant_value(value.args[0], graph)
        return None if operand is None else _VIEWS[name](operand, value)
    if name not in _ARITHMETIC or dtype_of(value) not in FLOATS:
        return None
    shapes = [shape_of(each) for each in (value, *value.args)]
    if any(shape is None or math.prod(shape) > _SMALL for shape in shapes):
        return None
    operands = [constant_value(each, graph) for each in value.args]
    if any(each is None for each in operands):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(_ARITHMETIC[name](*operands)).astype(dtype_of(value))


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
        rounded = np.asarray(value).astype(dtype)
    return relax.const(rounded, dtype) if np.isfinite(rounded).all() else None
