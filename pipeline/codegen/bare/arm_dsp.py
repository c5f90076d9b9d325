"""Multiply bytes by the instructions for signal processing of Cortex-M4 and later.

    sxtb16  a, w            even bytes of four as int16; uxtb16 for uint8
    sxtb16  b, w, ror #8    odd bytes
    smlad   total, a, x, total       two products added

One factor is spread so once, for several sums. The other one is read by the assembly that multiplies it: else LLVM reads and
spreads all words of a step first, and keeps them in memory for want of registers (47 instructions for 40 products, not 41).
"""

from __future__ import annotations

import re

from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad
from tvm.tirx import IntImm, PrimFunc, Ramp

from ...tir.lowering.kernel_target import architecture_of, features_of

#: largest offset of an address in ldr and ldrd
_LDR, _LDRD = 4095, 1020
#: functions for one sum, by their assembly: total, two registers, the even and odd values, an address and its offset
_FUNCTIONS = {
    "passfit_smlad_pairs": "ldrd $1, $2, [$6, $7]\\0A smlad $0, $4, $1, $0\\0A smlad $0, $5, $2, $0",
    "passfit_smlad_halves": "ldr $1, [$6, $7]\\0A ldr $2, [$6, $7 + 4]\\0A smlad $0, $4, $1, $0\\0A smlad $0, $5, $2, $0",
    "passfit_smlad_bytes": (
        "ldr $1, [$6, $7]\\0A sxtb16 $2, $1\\0A sxtb16 $1, $1, ror #8\\0A smlad $0, $4, $2, $0\\0A smlad $0, $5, $1, $0"
    ),
}
_BODY = """
  %r = call { i32, i32, i32 } asm sideeffect "@", "=&r,=&r,=&r,0,r,r,r,i,~{memory}"(i32 %0, i32 %1, i32 %2, ptr %3, i32 %4)
  %s = extractvalue { i32, i32, i32 } %r, 0
  ret i32 %s
}"""
_DECLARED = re.compile(rf"^declare i32 @({'|'.join(_FUNCTIONS)})\(.*$", re.MULTILINE)


def has_smlad(kernel: PrimFunc) -> bool:
    """Return whether a kernel's target is a Cortex-M with these instructions."""
    return architecture_of(kernel) == "thumb" and "+dsp" in features_of(kernel)


def smlad_products(total: Expr, weights: Expr, values: Expr, *, signed: bool = True) -> Expr:
    """Add the products of four int8 with four others, or with four uint8: both factors are int32 of four bytes, weights a load."""
    address, offset = _address(weights, _LDR)
    return tirx.call_extern(
        "int32", "passfit_smlad_bytes", total, *(_spread(values, turn, signed) for turn in (0, 8)), address, offset
    )


def smlad_halves(total: Expr, weights: Expr, first: TensorLoad, moved: int, whole: bool) -> Expr:
    """Add the products of an int32's four int8 with four int16, `moved` elements behind `first`.

    ldrd needs `whole` words, ldr takes any address.
    """
    offset = 2 * moved
    if offset > _LDR - 4:
        first, offset = tirx.BufferLoad(first.source, [first.indices[0] + moved]), 0
    name = "passfit_smlad_pairs" if whole and offset <= _LDRD else "passfit_smlad_halves"
    address = tirx.address_of(first)
    return tirx.call_extern(
        "int32", name, total, *(_spread(weights, turn, signed=True) for turn in (0, 8)), address, offset
    )


def smlad(total: Expr, one: Expr, other: Expr) -> Expr:
    """Add the products of the halves of two int32."""
    return tirx.call_llvm_pure_intrin("int32", "llvm.arm.smlad", one, other, total)


def add_definitions(code: str) -> str:
    """Define the functions that LLVM code as text declares."""
    head = "define internal i32 @{}(i32 %0, i32 %1, i32 %2, ptr %3, i32 %4) alwaysinline nounwind {{"
    return _DECLARED.sub(lambda found: head.format(found[1]) + _BODY.replace("@", _FUNCTIONS[found[1]]), code)


def _address(word: Expr, most: int) -> tuple[Expr, int]:
    """Return an address and an offset in bytes of a load, or of the first one of neighbours: other loads share the address."""
    load = word if isinstance(word, TensorLoad) else word.args[0]
    assert isinstance(load, TensorLoad)
    (index,), size = load.indices, load.ty.dtype.bits // 8
    moved = sym.Analyzer().simplify(index.base if isinstance(index, Ramp) else index)
    start, count = _apart(moved)
    if not 0 <= count * size <= most:
        start, count = moved, 0
    return tirx.address_of(tirx.BufferLoad(load.source, [start])), count * size


def _apart(index: Expr) -> tuple[Expr, int]:
    """Strip the constants of a sum."""
    if isinstance(index, IntImm):
        return tirx.const(0, index.ty.dtype), int(index)
    if not isinstance(index, tirx.Add):
        return index, 0
    (one, first), (other, second) = _apart(index.a), _apart(index.b)
    return one + other, first + second


def _spread(word: Expr, turn: int, signed: bool) -> Expr:
    if turn:  # LLVM joins a rotation with the instruction
        top, low = tirx.const(32 - turn, "uint32"), tirx.const(turn, "uint32")
        bits = tirx.reinterpret("uint32", word)
        word = tirx.reinterpret("int32", tirx.bitwise_or(tirx.shift_right(bits, low), tirx.shift_left(bits, top)))
    return tirx.call_llvm_pure_intrin("int32", "llvm.arm.sxtb16" if signed else "llvm.arm.uxtb16", word)
