"""Tell which constants of a Relax graph rules may change, and round new ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from ..dataflow import Dataflow, dtype_of
from .geometry import Geometry

#: dtypes whose weights the rules change; quantised ones stay
FLOATS = ("float16", "float32", "float64")


def is_constant(expr: relax.Expr, graph: Dataflow) -> bool:
    """Return whether an expression is a constant, perhaps moved, of a float dtype."""
    return dtype_of(expr) in FLOATS and graph.constant(expr) is not None


def ungrouped_convolutions(graph: Dataflow, *operators: str) -> Iterator[tuple[relax.Var, relax.Call, Geometry]]:
    """Yield the convolutions of one group whose constant weight no other call reads, with their geometry."""
    for var, call in graph.calls(*operators):
        geometry, weight = Geometry.of(call), call.args[1]
        if geometry is not None and geometry.groups == 1 and is_constant(weight, graph) and graph.is_owned(weight):
            yield var, call, geometry


def constant_of(value: np.ndarray, dtype: str) -> GenericConst | None:
    """Return a constant of the value rounded to `dtype`; None where that is not finite."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype, copy=False)
    return relax.const(rounded, dtype) if np.isfinite(rounded).all() else None
