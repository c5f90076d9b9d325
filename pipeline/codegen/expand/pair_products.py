"""Write `PAIRS`, the sum of two products, as one instruction if the target has it.

    PAIRS(w0, w1, x) = w0 · (low half of x) + w1 · (high half of x)        w0, w1: int8; halves of x, an int32: int16

A schedule rule writes it (kernels/rules/integer/pair_products.py) for a machine with `pairs`; TVM vectorises it over lanes.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.target.codegen import target_has_features
from tvm.tirx import PrimFunc

from ...tir.pairs import PAIRS

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
        one, other, halves = call.args
        return _product(one, other, halves, known)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (Call, expanded)))


def _is_pairs(call: Call) -> bool:
    return getattr(call.op, "name", "") == PAIRS


def _product(one: Expr, other: Expr, halves: Expr, known: Mapping[int, str]) -> Expr:
    """Return one instruction for vectors of as many lanes as a `known` one has, else two products."""
    lanes = one.ty.dtype.lanes
    if lanes in known:
        places = [place for lane in range(lanes) for place in (lane, lanes + lane)]
        weights = tirx.Shuffle([one, other], [tirx.const(place, "int32") for place in places])
        pairs = tirx.reinterpret(f"int16x{2 * lanes}", halves)
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", known[lanes], pairs, weights.astype(f"int16x{2 * lanes}"))
    wide = "int32" if lanes == 1 else f"int32x{lanes}"
    low = halves.astype(wide.replace("32", "16")).astype(wide)
    return low * one.astype(wide) + tirx.shift_right(halves, tirx.const(16, wide)) * other.astype(wide)
