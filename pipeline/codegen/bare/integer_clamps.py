"""Clamp floats that are rounded to bytes as integers, on cores without vectors.

    max(min(x, high), low) + 1.5 · 2**23, as bits
        ─►  min(max(vcvtr x, low), high) + bits of 1.5 · 2**23                      Arm's instruction, which rounds to even
        ─►  float of the bits min(max(bits of x, 0), bits of high) + 1.5 · 2**23           without floating point, if low is 0
        ─►  min(max(passfit_product(acc, bits of scale), low), high) + bits of 1.5 · 2**23    … if x is an integer by a float

All are exact: bounds are whole numbers, and bits of floats that are not negative grow with them, while negative floats have
negative bits. These cores compare floats in four instructions, or by a call. The byte of NaN is undefined in ONNX.
"""

from __future__ import annotations

import struct
from functools import partial

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.tirx import Add, Cast, FloatImm, Max, Min, Mul, PrimFunc

from ...tir.lowering.kernel_target import features_of, triple_of
from ...tir.switches import switchable
from .float_functions import PRODUCT

#: triples of cores without vectors
_CORES = ("thumb", "riscv32")
#: added to a float, it rounds to a whole number in the low bits
_ROUND, _ROUND_BITS = 12582912.0, 0x4B400000
#: Arm's features of floating point
_FLOATING = ("+vfp4", "+fp-armv8")


@switchable
def clamp_as_integers(kernel: PrimFunc) -> PrimFunc:
    """Clamp rounded floats as integers in a lowered kernel; other processors keep theirs."""
    if not triple_of(kernel).startswith(_CORES):
        return kernel
    converts = any(each.startswith(_FLOATING) for each in features_of(kernel))
    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (Call, partial(_clamp_bits, converts=converts))))


def _clamp_bits(call: Call, converts: bool) -> Expr:
    """Return a rounded, clamped float as bits; `converts` if the core has an instruction that rounds to an integer."""
    if getattr(call.op, "name", "") != "tirx.reinterpret" or str(getattr(call.ty, "dtype", "")) != "int32":
        return call
    rounded = call.args[0]
    if not isinstance(rounded, Add) or _number(rounded.b) != _ROUND:
        return call
    low, inner = _bound(rounded.a, Max)
    high, value = _bound(inner, Min)
    if low is None or high is None or low > high:
        return call
    whole: Expr | None = None
    if converts:
        whole = tirx.reinterpret("int32", tirx.call_llvm_pure_intrin("float32", "llvm.arm.vcvtr.f32", value))
    elif factors := _scaled_integer(value):
        whole = tirx.call_extern("int32", PRODUCT, *factors)
    if whole is not None and all(each == int(each) and abs(each) < 1 << 22 for each in (low, high)):
        least, most = (tirx.const(int(each), "int32") for each in (low, high))
        return tirx.min(tirx.max(whole, least), most) + tirx.const(_ROUND_BITS, "int32")
    if low != 0.0 or high <= 0:
        return call
    (largest,) = struct.unpack("<i", struct.pack("<f", high))
    bits = tirx.min(tirx.max(tirx.reinterpret("int32", value), tirx.const(0, "int32")), tirx.const(largest, "int32"))
    return tirx.reinterpret("int32", tirx.reinterpret("float32", bits) + rounded.b)


def _scaled_integer(value: Expr) -> tuple[Expr, Expr] | None:
    """Return the factors of a product of an integer and a float, the latter as bits."""
    for one, other in ((value.a, value.b), (value.b, value.a)) if isinstance(value, Mul) else ():
        if isinstance(one, Cast) and str(one.value.ty.dtype) == "int32" and str(value.ty.dtype) == "float32":
            return one.value, tirx.reinterpret("uint32", other)
    return None


def _bound(expr: Expr, kind: type[Max] | type[Min]) -> tuple[float | None, Expr]:
    """Return the constant operand of an extreme, and the other one."""
    if isinstance(expr, kind):
        for bound, value in ((expr.b, expr.a), (expr.a, expr.b)):
            if (number := _number(bound)) is not None:
                return number, value
    return None, expr


def _number(expr: Expr) -> float | None:
    return float(expr.value) if isinstance(expr, FloatImm) else None
