"""Count the instructions of a value that is computed for a vector, or for an element.

Sources: Fog, Instruction tables (2022), of divisions and square roots; `codegen/vector_math.py`, of functions as polynomials.
"""

from __future__ import annotations

from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import Add, Div, FloorDiv, FloorMod, Mod, Mul, Sub

from ..expressions import computed, dtype_bytes
from ..operators.quads import is_joined

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


def instructions(value: Expr) -> float:
    """Count the instructions of one each, for a vector; a multiplication and its addition are one."""
    operations = _operations(value)
    fused = sum(isinstance(each, (Add, Sub)) and Mul in (type(each.a), type(each.b)) for each, _ in operations)
    return max(0.0, sum(cost == 1 for _, cost in operations) - fused)


def soft_instructions(value: Expr) -> float:
    """Count the instructions of one element's floats on a processor that computes them by functions."""
    return SOFT * sum(str(each.ty.dtype).startswith("float") for each, cost in _operations(value) if cost)


def long_instructions(value: Expr, lanes: int) -> list[tuple[Expr, float]]:
    """List the parts of a value that take longer, with their own instructions for a vector of `lanes`."""
    return [(each, cost * lanes if cost == _CALL else cost) for each, cost in _operations(value) if cost > 1]


def widest(value: object) -> int:
    """Return the bytes of the widest element that a value is computed in: as many lanes as of it fit a vector."""
    return max((dtype_bytes(str(each.ty.dtype)) for each in computed(value)), default=1)


def _operations(value: object) -> list[tuple[Expr, float]]:
    """List the operations of a value, with the instructions of each."""
    return [(each, _own(each)) for each in computed(value) if not isinstance(each, TensorLoad)]


def _own(value: Expr) -> float:
    if isinstance(value, (Div, FloorDiv, FloorMod, Mod)):
        return _SLOW if "float" in str(value.ty.dtype) else DIVISION
    name = getattr(value.op, "name", "") if isinstance(value, Call) else ""
    if name in _LIBRARY:
        return _CALL
    if isinstance(value, Call) and is_joined(value):
        return 0  # counted as a load
    return _SLOW if name in ("tirx.sqrt", "tirx.rsqrt") else _POLYNOMIALS.get(name, 1)
