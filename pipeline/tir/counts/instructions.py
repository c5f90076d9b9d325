"""Count the instructions of a value that is computed for a vector, or for an element.

Sources: Fog, Instruction tables (2022), of divisions and square roots; `codegen/vector_math.py`, of functions as polynomials.
"""

from __future__ import annotations

from collections.abc import Iterator

from tvm.ir import Call, Expr, StringImm, TensorLoad, Var
from tvm.tirx import Add, Div, FloatImm, FloorDiv, FloorMod, IntImm, Mod, Mul, Sub

from ..expressions import dtype_bytes, parts, values_by_position
from ..operators.quads import NEIGHBOURS

#: instructions of a quotient or remainder of integers by a constant: multiply, shift, multiply, subtract
DIVISION = 4
#: instructions in the time of a division or square root of floats
_SLOW = 8
#: those of functions that are written as polynomials, with their divisions
_POLYNOMIALS = {"tirx.exp": 16, "tirx.sigmoid": 26, "tirx.tanh": 26, "tirx.erf": 24, "passfit.erf": 24}
#: functions of the C library, which compute one element a call, and their instructions
_LIBRARY = frozenset(
    f"tirx.{name}"
    for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp10", "exp2", "fmod", "log", "log10",
        "log1p", "log2", "pow", "sin", "sinh", "tan",
    )
)  # fmt: skip
_CALL = 40
#: those of an addition or product of floats in software: 40 to 60 (counted for MLPerf Tiny's float models on armv6m and rv32imc)
SOFT = 50
#: what no instruction computes; strings are the reasons of checks
_LEAVES = (Var, IntImm, FloatImm, StringImm)


def instructions(value: Expr) -> float:
    """Count the instructions of one each, for a vector; a multiplication and its addition are one."""
    return max(0.0, sum(cost == 1 for _, cost in _nodes(value)) - _count_fused(value))


def soft_instructions(value: Expr) -> float:
    """Count the instructions of one element's floats on a processor that computes them by functions."""
    return SOFT * sum(str(each.ty.dtype).startswith("float") for each, cost in _nodes(value) if cost)


def long_instructions(value: Expr, lanes: int) -> list[tuple[Expr, float]]:
    """List the parts of a value that take longer, with their own instructions for a vector of `lanes`."""
    return [(each, cost * lanes if cost == _CALL else cost) for each, cost in _nodes(value) if cost > 1]


def widest(value: object) -> int:
    """Return the bytes of the widest element that a value is computed in: as many lanes as of it fit a vector."""
    if isinstance(value, TensorLoad):
        return dtype_bytes(str(value.ty.dtype))
    if not isinstance(value, Expr) or isinstance(value, _LEAVES):
        return 1
    values = values_by_position(value)
    below = max(map(widest, parts(value) if values is None else values), default=1)
    return below if values is not None else max(below, dtype_bytes(str(value.ty.dtype)))


def _nodes(value: object) -> Iterator[tuple[Expr, float]]:
    """Yield all parts of a value that compute, with their instructions; a choice by position computes nothing."""
    if isinstance(value, (TensorLoad, *_LEAVES)) or not isinstance(value, Expr):
        return
    values = values_by_position(value)
    if values is None:
        yield value, _own(value)
    for each in parts(value) if values is None else values:
        yield from _nodes(each)


def _own(value: Expr) -> float:
    if isinstance(value, (Div, FloorDiv, FloorMod, Mod)):
        return _SLOW if "float" in str(value.ty.dtype) else DIVISION
    name = getattr(value.op, "name", "") if isinstance(value, Call) else ""
    if name in _LIBRARY:
        return _CALL
    if name == NEIGHBOURS and value.ty.dtype.lanes > 1:  # a load
        return 0
    return _SLOW if name in ("tirx.sqrt", "tirx.rsqrt") else _POLYNOMIALS.get(name, 1)


def _count_fused(value: object) -> int:
    if isinstance(value, TensorLoad) or not isinstance(value, Expr):
        return 0
    own = isinstance(value, (Add, Sub)) and any(isinstance(each, Mul) for each in (value.a, value.b))
    values = values_by_position(value)
    return int(own) + sum(map(_count_fused, parts(value) if values is None else values))
