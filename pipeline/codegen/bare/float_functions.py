"""Supply functions of floats to a library for a target without libm."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: C source of all of them; the linker keeps those that are called
SOURCE = Path(__file__).with_name("float_functions.c")
#: functions of doubles; each has one of floats, whose name ends in `f`
_DOUBLE = (
    "acos", "acosh", "asin", "asinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "floor", "fmod", "log", "nearbyint", "pow", "rint",
    "round", "roundeven", "sin", "sinh", "sqrt", "tanh", "trunc",
)  # fmt: skip
FLOAT_FUNCTIONS = frozenset(name + suffix for name in _DOUBLE for suffix in ("", "f"))

#: function of an integer and a float, by its bits: their product, rounded to an integer
PRODUCT = "passfit_product"
SUPPLIED = FLOAT_FUNCTIONS | {PRODUCT}


def calls_float_functions(undefined: Iterable[str]) -> bool:
    """Return whether one of the symbols that kernels lack is supplied here."""
    return not SUPPLIED.isdisjoint(undefined)
