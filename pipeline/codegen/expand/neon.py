"""Multiply bytes and add up neighbours by NEON's instructions, or as vectors that every target knows."""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr
from tvm.tirx import PrimFunc

from ...tir.lowering.kernel_target import architecture_of
from .shuffle import take

#: products of eight bytes in int16; neighbours of eight int16 added up in four int32, on Arm added to others at once
_PRODUCTS = {"aarch64": "llvm.aarch64.neon.smull.v8i16", "arm": "llvm.arm.neon.vmulls.v8i16"}
_SUMS = {"aarch64": "llvm.aarch64.neon.saddlp.v4i32.v8i16", "arm": "llvm.arm.neon.vpadals.v4i32.v8i16"}


def intrinsics_of(kernel: PrimFunc) -> str | None:
    """Return which intrinsics a kernel's target has, `aarch64` or `arm`; None for neither."""
    architecture = architecture_of(kernel)
    return architecture if architecture in _SUMS else None


def add_neighbours(total: Expr, products: Expr, neon: str | None) -> Expr:
    """Add neighbours of eight int16 to four int32."""
    if neon == "arm":  # adds to its first operand
        return tirx.call_llvm_pure_intrin("int32x4", _SUMS[neon], total, products)
    return total + neighbour_sums(products, neon)


def neighbour_sums(products: Expr, neon: str | None) -> Expr:
    """Add up neighbours of eight int16 in four int32; not for Arm, which adds them to others."""
    if neon is not None:
        return tirx.call_llvm_pure_intrin("int32x4", _SUMS[neon], products)
    even, odd = (take([products], range(first, 8, 2)) for first in (0, 1))
    return even.astype("int32x4") + odd.astype("int32x4")


def product(one: Expr, other: Expr, neon: str | None) -> Expr:
    """Multiply vectors of eight int8, in int16."""
    if neon is not None:
        return tirx.call_llvm_pure_intrin("int16x8", _PRODUCTS[neon], one, other)
    return one.astype("int16x8") * other.astype("int16x8")
