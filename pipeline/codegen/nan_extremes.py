"""Order the operands of extremes by their meaning for NaN, which LLVM's comparison leaves to that order.

LLVM's max(a, b) is `a > b ? a : b`: b, if either is NaN. Here NaN passes a bound, and is not an extreme of a window or row:

    max(x, c)                 ─►  max(c, x)                       a Relu, a Clip
    m = max(m, x)             ─►  m = max(x, m)                   m starts from a number
    max(max(x, y), z)         ─►  max(z, max(y, max(x, -∞)))      an unrolled window or row

Only the last costs an instruction, one a window. Graphs write an elementwise maximum of two tensors by conditions
(frontend/relax/operators/extremes.py).
"""

from __future__ import annotations

import math
from functools import partial

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad
from tvm.tirx import Bind, BufferStore, FloatImm, Max, Min, PrimFunc, Stmt

from ..tir.loop_nests import with_fields


def order_extremes(kernel: PrimFunc) -> PrimFunc:
    """Return a lowered, vectorised kernel whose extremes of floats treat NaN as above."""

    def rewrite(stmt: BufferStore | Bind) -> Stmt:
        return with_fields(stmt, value=tvm_ffi.structural_map(stmt.value, ((Max, Min), partial(_order, stmt=stmt))))

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, ((BufferStore, Bind), rewrite)))


def _order(extreme: Max | Min, stmt: BufferStore | Bind) -> Expr:
    """Return an extreme with its operands in order; those within it are done already."""
    kind, one, other = type(extreme), extreme.a, extreme.b
    if "float" not in str(extreme.ty.dtype) or _is_number(one):
        return extreme
    if _is_number(other) or isinstance(one, kind) or _is_replaced(one, stmt):
        return kind(other, one)
    least = tirx.const(-math.inf if kind is Max else math.inf, extreme.ty.dtype)
    return kind(other, kind(one, least))


def _is_number(expr: Expr) -> bool:
    return isinstance(expr.value if isinstance(expr, tirx.Broadcast) else expr, FloatImm)


def _is_replaced(expr: Expr, stmt: BufferStore | Bind) -> bool:
    """Return whether `expr` is the element that `stmt` replaces."""
    return (
        isinstance(expr, TensorLoad) and isinstance(stmt, BufferStore) and expr.source.same_as(stmt.buffer)
        and all(tvm_ffi.structural_equal(index, at) for index, at in zip(expr.indices, stmt.indices, strict=True))
    )  # fmt: skip
