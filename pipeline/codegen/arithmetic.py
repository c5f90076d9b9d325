"""Define GNU's arithmetic helpers for 32-bit Arm.

TVM's objects call GNU's names (`__floatdisf`); the toolchain's runtime has only those of the Arm EABI (`__aeabi_l2f`).
Each helper is one C expression, compiled into the runtime's own call. Names and meaning: GCC internals, "The GCC
low-level runtime library".
"""

from __future__ import annotations

from ..targets import Target
from .elf import ElfObject


def _convert(result: str, argument: str) -> tuple[str, str, str]:
    return result, f"{argument} a", f"({result})a"


#: name → result type, parameters, expression
_HELPERS = {
    "__divsi3": ("int32_t", "int32_t a, int32_t b", "a / b"),
    "__udivsi3": ("uint32_t", "uint32_t a, uint32_t b", "a / b"),
    "__muldi3": ("int64_t", "int64_t a, int64_t b", "a * b"),
    "__ashldi3": ("int64_t", "int64_t a, int b", "(int64_t)((uint64_t)a << b)"),
    "__ashrdi3": ("int64_t", "int64_t a, int b", "a >> b"),
    "__lshrdi3": ("uint64_t", "uint64_t a, int b", "a >> b"),
    "__fixsfdi": _convert("int64_t", "float"),
    "__fixdfdi": _convert("int64_t", "double"),
    "__fixunssfdi": _convert("uint64_t", "float"),
    "__fixunsdfdi": _convert("uint64_t", "double"),
    "__floatdisf": _convert("float", "int64_t"),
    "__floatdidf": _convert("double", "int64_t"),
    "__floatundisf": _convert("float", "uint64_t"),
    "__floatundidf": _convert("double", "uint64_t"),
}


def arithmetic_helpers(kernels: ElfObject, target: Target) -> list[tuple[str, str, str, str]]:
    """Return (name, result type, parameters, expression) of each helper the kernels call."""
    if target.architecture not in ("arm", "thumb"):
        return []
    return [(name, *_HELPERS[name]) for name in kernels.undefined if name in _HELPERS]
