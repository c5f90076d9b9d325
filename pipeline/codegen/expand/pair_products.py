"""Write `PAIRS`, `FOURS` and `HALVES`, sums of two and of four products, by the instructions of a target that has them.

    PAIRS(w, x) = w0 · (low half of x) + w1 · (high half of x)      w0, w1: two int8 in an int16; halves of x, an int32: int16
    FOURS(s, w, x) = s + w0 · x0 + w1 · x1 + w2 · x2 + w3 · x3      four int8 and four uint8, each in an int32
    HALVES(s, w, l, h) = s + w0 · (low half of l) + w2 · (high half of l) + w1 · (low half of h) + w3 · (high half of h)

Schedule rules write them (kernels/rules/integer/runs) for machines with `pairs` and `dots`; TVM vectorises them over lanes.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.target.codegen import target_has_features
from tvm.tirx import PrimFunc

from ...tir.operators.pairs import FOURS, HALVES, PAIRS
from ..bare.arm_dsp import has_smlad, smlad_halves, smlad_products

#: vpmaddwd by its lanes, and the feature it needs
_INTRINSICS = {8: ("llvm.x86.avx2.pmadd.wd", "avx2"), 16: ("llvm.x86.avx512.pmaddw.d.512", "avx512bw")}
#: vpdpbusd by its lanes, and the features that have it
_DOTS = {8: ("llvm.x86.avx512.vpdpbusd.256", ("avx512vnni", "avxvnni")), 16: ("llvm.x86.avx512.vpdpbusd.512", ("avx512vnni",))}


def with_pair_products(kernel: PrimFunc) -> PrimFunc:
    """Expand these operators in a lowered, vectorised kernel, by the features of its attribute `target`."""
    found: list[Call] = []
    tvm_ffi.structural_walk(kernel.body, (Call, lambda call: found.append(call) if _name(call) in (PAIRS, FOURS, HALVES) else None))
    if not found:
        return kernel
    target = kernel.attrs["target"]
    known = {lanes: name for lanes, (name, feature) in _INTRINSICS.items() if target_has_features(feature, target)}

    dots = {lanes: name for lanes, (name, features) in _DOTS.items() if any(target_has_features(each, target) for each in features)}

    def expanded(call: Call) -> Expr:
        if _name(call) == FOURS:
            if has_smlad(kernel):
                return smlad_products(*call.args, signed=False)
            return _dots(*call.args, known=dots)
        if _name(call) == HALVES:
            *factors, whole = call.args
            return smlad_halves(*factors[:3], whole=bool(whole)) if has_smlad(kernel) else _halves(*factors)
        if _name(call) != PAIRS:
            return call
        weights, halves = call.args
        return _product(weights, halves, known)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (Call, expanded)))


def _name(call: Call) -> str:
    return getattr(call.op, "name", "")


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
    return low + tirx.shift_right(halves, tirx.const(16, dtype)) * tirx.shift_right(weights, tirx.const(8, short)).astype(dtype)


def _dots(total: Expr, weights: Expr, values: Expr, known: Mapping[int, str]) -> Expr:
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


def _halves(total: Expr, weights: Expr, low: Expr, high: Expr) -> Expr:
    def signed(word: Expr, first: int, bits: int) -> Expr:
        top = tirx.const(32 - bits, "int32")
        return tirx.shift_right(tirx.shift_left(word, top - first), top)

    for place, word in enumerate((low, high)):
        for half in (0, 1):
            total = total + signed(weights, 8 * (2 * half + place), 8) * signed(word, 16 * half, 16)
    return total
