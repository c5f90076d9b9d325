"""Read constants of a Relax graph without copies, through operators on constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from ..dataflow import MOVES, Dataflow, dtype_of, shape_of

#: dtypes whose weights the rules change; quantised ones stay
FLOATS = ("float16", "float32", "float64")
#: elements of a constant computed here at most: parameters of channels, not weights
_SMALL = 1 << 16
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
    name, shape = graph.operator(call), shape_of(call)
    if shape is None or name not in MOVES | _ARITHMETIC.keys():
        return None
    operands = []
    for each in call.args[: 1 if name in MOVES else None]:
        operand = known.get(graph.variable(each)) if isinstance(each, relax.Var) else graph.constant(each)
        if operand is None:
            return None
        operands.append(operand)
    if name in MOVES:
        return graph.move(call, operands[0])
    if dtype_of(call) not in FLOATS or max(math.prod(shape), *(each.size for each in operands)) > _SMALL:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(_ARITHMETIC[name](*operands)).astype(dtype_of(call))


def is_constant(expr: relax.Expr, graph: Dataflow) -> bool:
    """Return whether an expression is a constant, perhaps moved, of a float dtype."""
    return dtype_of(expr) in FLOATS and graph.constant(expr) is not None


def constant_of(value: np.ndarray, dtype: str) -> GenericConst | None:
    """Return a constant of the value rounded to `dtype`; None where that is not finite."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype, copy=False)
    return relax.const(rounded, dtype) if np.isfinite(rounded).all() else None
