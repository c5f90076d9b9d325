"""Write `PAIRS`, the sum of two products, as one instruction if the target has it.

    PAIRS(w, x) = w0 · (low half of x) + w1 · (high half of x)      w0, w1: two int8 in an int16; halves of x, an int32: int16

A schedule rule writes it (kernels/rules/integer) for a machine with `pairs`; TVM vectorises it over lanes.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.target.codegen import target_has_features
from tvm.tirx import PrimFunc

from ...tir.operators.pairs import PAIRS

#: vpmaddwd by its lanes, and the feature it needs
_INTRINSICS = {8: ("llvm.x86.avx2.pmadd.wd", "avx2"), 16: ("llvm.x86.avx512.pmaddw.d.512", "avx512bw")}


def with_pair_products(kernel: PrimFunc) -> PrimFunc:
    """Expand `PAIRS` in a lowered, vectorised kernel, by the features of its attribute `target`."""
    found: list[Call] = []
    tvm_ffi.structural_walk(kernel.body, (Call, lambda call: found.append(call) if _is_pairs(call) else None))
    if not found:
        return kernel
    target = kernel.attrs["target"]
    known = {lanes: name for lanes, (name, feature) in _INTRINSICS.items() if target_has_features(feature, target)}

    def expanded(call: Call) -> Expr:
        if not _is_pairs(call):
            return call
        weights, halves = call.args
        return _product(weights, halves, known)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (Call, expanded)))


def _is_pairs(call: Call) -> bool:
    return getattr(call.op, "name", "") == PAIRS


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
