"""Convert float16 by arithmetic on its bits on processors without an instruction for it: ARMv7, RISC-V without Zfh.

LLVM would call a function for each element, and TVM supplies one whose arguments are in other registers than RISC-V's
callers put them. Operators of float16 compute in float32 and round, as LLVM's own do. The forms are those of M. Dukhan's
library FP16: exact, also for subnormal numbers, infinities and NaN, and without branches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, Op, register_op_attr
from tvm.tirx import Bind, BufferStore, Let, PrimFunc, Select, Stmt

from ...tir.expressions import collect
from ...tir.loop_nests import with_fields
from ...tir.lowering.kernel_target import architecture_of, features_of
from ...tir.switches import switchable

#: conversions to and from float32; call effect 1 is "pure"
WIDEN, NARROW = "passfit.widen_half", "passfit.narrow_half"
for _name in (WIDEN, NARROW):
    register_op_attr(_name, "TCallEffectKind", 1)
_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Min, tirx.Max)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
#: calls that move float16 and compute nothing
_MOVES = frozenset(
    {"tirx.if_then_else", "tirx.reinterpret", "tirx.vectorlow", "tirx.vectorhigh", "tirx.vectorcombine", WIDEN, NARROW}
)
#: features with instructions of their own, by architecture
_NATIVE = {
    "arm": frozenset({"+fp16", "+fullfp16"}), "thumb": frozenset({"+fp16", "+fullfp16"}),
    "riscv": frozenset({"+zfh", "+zfhmin"}),
}  # fmt: skip


@switchable
def expand_half_conversions(kernel: PrimFunc) -> PrimFunc:
    """Return a kernel whose values convert float16 by calls of WIDEN and NARROW; the same one on other processors."""
    if not _lacks_instructions(kernel):
        return kernel

    def rewrite(stmt: BufferStore | Bind) -> Stmt:
        if collect(stmt.value, Let):
            return stmt
        kinds = (tirx.Cast, Call, *_ARITHMETIC, *_COMPARISONS)
        return with_fields(stmt, value=tvm_ffi.structural_map(stmt.value, (kinds, _widen_operation)))

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, ((BufferStore, Bind), rewrite)))


def _lacks_instructions(kernel: PrimFunc) -> bool:
    native = _NATIVE.get(architecture_of(kernel) or "")
    return native is not None and native.isdisjoint(features_of(kernel))


def _widen_operation(expr: Any) -> Expr:
    """Return an expression that reads or makes float16 with float32 in its place; its operands are done already."""
    if isinstance(expr, tirx.Cast):
        if _is_half(expr.value):
            wide = _wide(expr.value)
            return wide if str(expr.ty.dtype).startswith("float32") else tirx.Cast(expr.ty.dtype, wide)
        return _narrow(tirx.Cast(_other(expr.ty.dtype), expr.value)) if _is_half(expr) else expr
    if isinstance(expr, Call):
        if not _is_half(expr) or getattr(expr.op, "name", "") in _MOVES:
            return expr
        operands = [_wide(each) if isinstance(each, Expr) and _is_half(each) else each for each in expr.args]
        return _narrow(Call(expr.op, operands, ret_ty=tirx.const(0, _other(expr.ty.dtype)).ty))
    if not _is_half(expr.a):
        return expr
    both = type(expr)(_wide(expr.a), _wide(expr.b))
    return both if isinstance(expr, _COMPARISONS) else _narrow(both)


def _is_half(expr: Expr) -> bool:
    dtype = getattr(expr.ty, "dtype", None)
    return dtype is not None and dtype.with_lanes(1) == "float16"


def _other(dtype: tvm_ffi.dtype, kind: str = "float32") -> str:
    """Return `kind` with the lanes of `dtype`."""
    return str(tvm_ffi.dtype(kind).with_lanes(dtype.lanes))


def _wide(expr: Expr) -> Expr:
    number = expr.value if isinstance(expr, tirx.Broadcast) else expr
    dtype = _other(expr.ty.dtype)
    if isinstance(number, tirx.FloatImm):
        return tirx.const(number.value, dtype)
    return Call(Op.get(WIDEN), [expr], ret_ty=tirx.const(0, dtype).ty)


def _narrow(expr: Expr) -> Expr:
    return Call(Op.get(NARROW), [expr], ret_ty=tirx.const(0, _other(expr.ty.dtype, "float16")).ty)


def widen(half: Expr, keep: Callable[[Expr], Expr]) -> Expr:
    """Return a float16 as float32; `keep` computes a value once."""
    words, single = _other(half.ty.dtype, "uint32"), _other(half.ty.dtype)
    number = _numbers(words)
    bits = keep(tirx.Cast(words, tirx.reinterpret(_other(half.ty.dtype, "uint16"), half)))
    unsigned = keep(tirx.shift_left(bits, number(17)))
    normal = tirx.reinterpret(single, tirx.shift_right(unsigned, number(4)) + number(0xE0 << 23)) * tirx.const(
        2.0**-112, single
    )
    small = tirx.reinterpret(
        single, tirx.bitwise_or(tirx.shift_right(unsigned, number(17)), number(126 << 23))
    ) - tirx.const(0.5, single)
    sign = tirx.shift_left(tirx.bitwise_and(bits, number(0x8000)), number(16))
    magnitude = Select(unsigned < number(1 << 27), tirx.reinterpret(words, small), tirx.reinterpret(words, normal))
    return tirx.reinterpret(single, tirx.bitwise_or(sign, magnitude))


def narrow(single: Expr, keep: Callable[[Expr], Expr]) -> Expr:
    """Return a float32 rounded to float16, to the nearest even; `keep` computes a value once."""
    words, wide = _other(single.ty.dtype, "uint32"), str(single.ty.dtype)
    number = _numbers(words)
    bits = keep(tirx.reinterpret(words, single))
    sign = keep(tirx.bitwise_and(bits, number(0x80000000)))
    unsigned = keep(tirx.shift_left(bits, number(1)))
    # out of range becomes an infinity here
    scaled = (
        tirx.reinterpret(wide, tirx.bitwise_xor(bits, sign)) * tirx.const(2.0**112, wide) * tirx.const(2.0**-110, wide)
    )
    exponent = tirx.Max(tirx.bitwise_and(unsigned, number(0xFF000000)), number(0x71000000))
    # the sum rounds at the last bit of a float16 of this exponent
    rounded = keep(
        tirx.reinterpret(
            words, tirx.reinterpret(wide, tirx.shift_right(exponent, number(1)) + number(0x07800000)) + scaled
        )
    )
    magnitude = tirx.bitwise_and(tirx.shift_right(rounded, number(13)), number(0x7C00)) + tirx.bitwise_and(
        rounded, number(0x0FFF)
    )
    whole = tirx.bitwise_or(
        tirx.shift_right(sign, number(16)), Select(unsigned > number(0xFF000000), number(0x7E00), magnitude)
    )
    return tirx.reinterpret(_other(single.ty.dtype, "float16"), tirx.Cast(_other(single.ty.dtype, "uint16"), whole))


def _numbers(words: str) -> Callable[[int], Expr]:
    return lambda value: tirx.const(value, words)
