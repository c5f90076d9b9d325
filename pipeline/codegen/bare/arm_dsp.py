"""Multiply four bytes by the instructions for signal processing of Cortex-M4 and later.

    sxtb16  a, w            even bytes of four as int16; uxtb16 for uint8
    sxtb16  b, w, ror #8    odd bytes
    smlad   total, a, x, total       two products added

Words that are spread for several sums are spread once, as LLVM finds equal calls.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr
from tvm.tirx import PrimFunc


def has_smlad(kernel: PrimFunc) -> bool:
    """Tell whether a kernel's target is a Cortex-M with these instructions."""
    target = kernel.attrs["target"].attrs if kernel.attrs and "target" in kernel.attrs else {}
    return str(target.get("mtriple", "")).startswith("thumb") and "+dsp" in {str(each) for each in target.get("mattr", ())}


def smlad_products(total: Expr, weights: Expr, values: Expr, signed: bool = True) -> Expr:
    """Add the products of four int8 with four others, or with four uint8: both factors are int32 of four bytes."""
    for turn in (0, 8):
        pairs = [_spread(each, turn, kept) for each, kept in ((weights, True), (values, signed))]
        total = tirx.call_llvm_pure_intrin("int32", "llvm.arm.smlad", *pairs, total)
    return total


def _spread(word: Expr, turn: int, signed: bool) -> Expr:
    if turn:  # LLVM joins a rotation with the instruction
        top, low = tirx.const(32 - turn, "uint32"), tirx.const(turn, "uint32")
        bits = tirx.reinterpret("uint32", word)
        word = tirx.reinterpret("int32", tirx.bitwise_or(tirx.shift_right(bits, low), tirx.shift_left(bits, top)))
    return tirx.call_llvm_pure_intrin("int32", "llvm.arm.sxtb16" if signed else "llvm.arm.uxtb16", word)
