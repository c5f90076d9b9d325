"""Convert Max, Min and Clip so that NaN passes, as in ONNX Runtime: of a maximum of two it is the result.

    max(a, b)      ─►  a, where b < a or a is NaN; else b
    max(x, c)      ─►  an operator of graph passes, whose kernel lets NaN pass        (codegen/nan_extremes.py)

TVM stacks the inputs of Max and Min along a new axis and reduces it, which needs memory for all of them at once.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

_PAIRWISE = {"Max": (relax.op.maximum, relax.op.greater), "Min": (relax.op.minimum, relax.op.less)}
EXTREMES = frozenset({*_PAIRWISE, "Clip"})


def convert_extreme(builder: relax.BlockBuilder, op: str, inputs: Sequence[relax.Expr | None]) -> relax.Expr:
    """Convert a node; Clip takes the larger of a value and its lower bound, then the smaller."""
    if op == "Clip":
        value, low, high = [*inputs, None, None][:3]
        for bound, kind in ((low, "Max"), (high, "Min")):
            value = value if bound is None else _extreme(builder, kind, value, bound)
        return value
    given = [each for each in inputs if each is not None]
    return builder.normalize(functools.reduce(functools.partial(_extreme, builder, op), given))


def _extreme(builder: relax.BlockBuilder, op: str, one: relax.Expr, other: relax.Expr) -> relax.Expr:
    pairwise, beyond = _PAIRWISE[op]
    if "float" not in str(one.ty.dtype):
        return builder.emit(pairwise(one, other))
    for value, bound in ((one, _bound(other, one)), (other, _bound(one, other))):
        if bound is not None:
            return builder.emit(pairwise(value, bound))
    chosen = builder.emit(relax.op.logical_or(builder.emit(beyond(one, other)), builder.emit(relax.op.isnan(one))))
    return builder.emit(relax.op.where(chosen, one, other))


def _bound(value: relax.Expr, other: relax.Expr) -> relax.Expr | None:
    """Return a constant of one number without its dimensions: kernels hold only such as a number; else None.

    None for NaN, and for more dimensions than the other operand has: the result has them, too.
    """
    if not isinstance(value, GenericConst) or len(value.ty.shape) > len(other.ty.shape):
        return None
    number = value.value.numpy()
    if number.size != 1 or np.isnan(number.astype("float64")).any():
        return None
    return relax.const(number.reshape(()), str(value.ty.dtype))
