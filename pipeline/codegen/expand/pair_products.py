"""Write `PAIRS`, `FOURS`, `HALVES` and `COUPLES`, sums of products, by a target's instructions.

    PAIRS(w, x) = w0 · (low half of x) + w1 · (high half of x)      w0, w1: two int8 in an int16; halves of x, an int32: int16
    FOURS(s, w, x) = s + w0 · x0 + w1 · x1 + w2 · x2 + w3 · x3      four int8 and four uint8, each in an int32
    HALVES(s, w, x, n) = s + w0 · x[n] + w2 · x[n + 1] + w1 · x[n + 2] + w3 · x[n + 3]      int16 in memory
    COUPLES(s, x, y) = s + x0 · y0 + x1 · y1      two int16, the halves of an int32, each

Schedule rules write them (kernels/rules/integer/runs) for machines with `pairs` and `dots`; TVM vectorises them over lanes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.target.codegen import target_has_features
from tvm.tirx import IntImm, PrimFunc

from ...tir.operators.pairs import COUPLES, FOURS, HALVES, PAIRS
from ..bare.arm_dsp import has_smlad, smlad, smlad_halves, smlad_products
from .shuffle import expand_operators

#: vpmaddwd by its lanes, and the features that have it
_INTRINSICS = {8: ("llvm.x86.avx2.pmadd.wd", ("avx2",)), 16: ("llvm.x86.avx512.pmaddw.d.512", ("avx512bw",))}
#: vpdpbusd by its lanes, and the features that have it
_DOTS = {
    8: ("llvm.x86.avx512.vpdpbusd.256", ("avx512vnni", "avxvnni")),
    16: ("llvm.x86.avx512.vpdpbusd.512", ("avx512vnni",)),
}


def expand_pair_products(kernel: PrimFunc) -> PrimFunc:
    """Expand these operators in a lowered, vectorised kernel, by the features of its attribute `target`."""
    # looked up at the first operator: LLVM is asked for each feature, and most kernels have no operator
    pairs, dots = (cache(partial(_available, each, kernel)) for each in (_INTRINSICS, _DOTS))
    smlads = has_smlad(kernel)

    def pair(call: Call) -> Expr:
        weights, values = call.args
        return _product(weights, values, pairs())

    def four(call: Call) -> Expr:
        return smlad_products(*call.args, signed=False) if smlads else _dots(*call.args, known=dots())

    def four_halves(call: Call) -> Expr:
        total, weights, first, moved, whole = call.args
        if smlads:
            return smlad_halves(total, weights, first, int(moved), bool(whole))
        return _halves(total, weights, first, int(moved))

    def couple(call: Call) -> Expr:
        return (smlad if smlads else _couples)(*call.args)

    return expand_operators(kernel, {PAIRS: pair, FOURS: four, HALVES: four_halves, COUPLES: couple})


def _available(instructions: Mapping[int, tuple[str, tuple[str, ...]]], kernel: PrimFunc) -> dict[int, str]:
    """Return the instructions, by their lanes, of which the kernel's target has a feature."""
    if not kernel.attrs or "target" not in kernel.attrs:
        return {}
    target = kernel.attrs["target"]
    return {
        lanes: name
        for lanes, (name, features) in instructions.items()
        if any(target_has_features(each, target) for each in features)
    }


def _product(weights: Expr, halves: Expr, known: Mapping[int, str]) -> Expr:
    """Return one instruction for vectors of as many lanes as a `known` one has, else two products."""
    lanes = weights.ty.dtype.lanes
    if lanes in known:
        pairs = f"int16x{2 * lanes}"
        wide = tirx.reinterpret(f"int8x{2 * lanes}", weights).astype(pairs)
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", known[lanes], tirx.reinterpret(pairs, halves), wide)
    dtype = "int32" if lanes == 1 else f"int32x{lanes}"
    short, byte = dtype.replace("32", "16"), dtype.replace("32", "8")
    low = halves.astype(short).astype(dtype) * weights.astype(byte).astype(dtype)
    return low + tirx.shift_right(halves, tirx.const(16, dtype)) * tirx.shift_right(
        weights, tirx.const(8, short)
    ).astype(dtype)


def _dots(total: Expr, weights: Expr, values: Expr, *, known: Mapping[int, str]) -> Expr:
    """Return one instruction for vectors of as many lanes as a `known` one has, else four products."""
    lanes = total.ty.dtype.lanes
    if lanes in known:
        bytes_ = f"int8x{4 * lanes}"
        factors = [tirx.reinterpret(bytes_, each) for each in (values, weights)]
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", known[lanes], total, *factors)
    dtype = "int32" if lanes == 1 else f"int32x{lanes}"
    top = tirx.const(24, dtype)
    for shift in (0, 8, 16, 24):
        value = tirx.bitwise_and(tirx.shift_right(values, tirx.const(shift, dtype)), tirx.const(255, dtype))
        total = total + tirx.shift_right(tirx.shift_left(weights, tirx.const(24 - shift, dtype)), top) * value
    return total


def _halves(total: Expr, weights: Expr, first: TensorLoad, moved: int) -> Expr:
    for place, byte in enumerate((0, 2, 1, 3)):
        value = tirx.BufferLoad(first.source, [*first.indices[:-1], first.indices[-1] + (moved + place)])
        total = total + _signed(weights, 8 * byte, 8) * value.astype("int32")
    return total


def _couples(total: Expr, one: Expr, other: Expr) -> Expr:
    return total + _signed(one, 0, 16) * _signed(other, 0, 16) + _signed(one, 16, 16) * _signed(other, 16, 16)


def _signed(word: Expr, first: int, bits: int) -> Expr:
    """Return some bits of an int32 as a number."""
    if isinstance(word, IntImm):  # TVM refuses constants that a shift takes out of their range
        found, half = int(word) >> first & (1 << bits) - 1, 1 << bits - 1
        return tirx.const((found ^ half) - half, "int32")
    top = tirx.const(32 - bits, "int32")
    return tirx.shift_right(tirx.shift_left(word, top - first), top)
