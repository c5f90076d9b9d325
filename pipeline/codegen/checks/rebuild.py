"""Rebuild TIR expressions around new operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import BitwiseNot, Broadcast, Cast, Not, Ramp, Select

from ...tir.expressions import parts
from ...tir.index_grid import NoMatch


def rebuild(expr: Expr, operand: Callable[[Expr], Expr]) -> Expr:
    """Return `expr` with each direct operand replaced; the same object if none changes.

    Raises NoMatch for expressions that no kernel holds before it is lowered.
    """
    before: list[Any] = parts(expr)
    after = [operand(each) for each in before]
    if all(one.same_as(other) for one, other in zip(before, after)):
        return expr
    if isinstance(expr, Call):
        return Call(expr.op, after, expr.attrs, ret_ty=expr.ty)
    if isinstance(expr, TensorLoad):
        return tirx.BufferLoad(expr.source, after)
    if isinstance(expr, Cast):
        return Cast(str(expr.ty.dtype), *after)
    if isinstance(expr, (Ramp, Broadcast)):
        return type(expr)(*after, expr.lanes)
    if isinstance(expr, (BitwiseNot, Not, Select)) or (hasattr(expr, "a") and hasattr(expr, "b")):
        return type(expr)(*after)
    raise NoMatch(f"{type(expr).__name__} in an index")
