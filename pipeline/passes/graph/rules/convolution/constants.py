"""Tell which constants of a Relax graph rules may change, and round new ones."""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

from ..dataflow import Dataflow, dtype_of

#: dtypes whose weights the rules change; quantised ones stay
FLOATS = ("float16", "float32", "float64")


def is_constant(expr: relax.Expr, graph: Dataflow) -> bool:
    """Return whether an expression is a constant, perhaps moved, of a float dtype."""
    return dtype_of(expr) in FLOATS and graph.constant(expr) is not None


def constant_of(value: np.ndarray, dtype: str) -> GenericConst | None:
    """Return a constant of the value rounded to `dtype`; None where that is not finite."""
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype, copy=False)
    return relax.const(rounded, dtype) if np.isfinite(rounded).all() else None
