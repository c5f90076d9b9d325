"""Write sums along runs of bytes (tir/operators/runs.py) by NEON's instructions.

    smull  v.8h, w[0:8], x[0:8]       products of eight neighbours, int16
    smlsl2 v.8h, w[8:16], x[8:16]     less those of the next eight
    sadalp sums.4s, v.8h              neighbours added up in int32
    addp                              four sums of four runs each become one number each, by three

16 products in three instructions without copies of a value (XNNPACK, the kernels c16 "mlal"). Written as vectors that
LLVM knows: on other targets the same numbers come out.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad
from tvm.tirx import PrimFunc, Ramp

from ...tir.operators.runs import RUN, RUNS, SUMS, TOTALS
from .neon import intrinsics_of, less_products, with_neighbour_sums
from .shuffle import taken


def with_byte_runs(kernel: PrimFunc) -> PrimFunc:
    """Expand the operators of tir/operators/runs.py in a lowered, vectorised kernel, by its attribute `target`."""
    found: list[Call] = []
    tvm_ffi.structural_walk(kernel.body, (Call, lambda call: found.append(call) if _name(call) in (RUNS, TOTALS) else None))
    if not found:
        return kernel
    neon = intrinsics_of(kernel)

    def expanded(call: Call) -> Expr:
        if _name(call) == RUNS:
            sums, weights, values = call.args
            return _runs(sums, weights, values, neon)
        return _totals(call, neon) if _name(call) == TOTALS else call

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (Call, expanded)))


def _name(call: Call) -> str:
    return getattr(call.op, "name", "")


def _runs(sums: Expr, weights: Expr, values: Expr, neon: str | None) -> Expr:
    assert sums.ty.dtype.lanes == SUMS, "runs are vectors of four sums"
    w, x = (tirx.reinterpret(f"int8x{RUN}", each) for each in (weights, values))
    (w0, w1), (x0, x1) = ([taken([each], range(first, first + RUN // 2)) for first in (0, RUN // 2)] for each in (w, x))
    return with_neighbour_sums(sums, less_products(w0, x0, w1, x1, neon), neon)


def _totals(call: Call, neon: str | None) -> Expr:
    first, lanes = call.args[0], call.ty.dtype.lanes
    assert isinstance(first, TensorLoad) and lanes % SUMS == 0, "totals are vectors of fours"
    start = first.indices[-1]
    assert isinstance(start, Ramp) and int(start.stride) == SUMS, "totals leave gaps"

    def sums(number: int) -> Expr:
        at = Ramp(start.base + number * SUMS, tirx.const(1, start.base.ty.dtype), SUMS)
        return tirx.reinterpret("int32x4", tirx.BufferLoad(first.source, [*first.indices[:-1], at]))

    parts = []
    for filter_ in range(0, lanes, SUMS):
        one, other, third, fourth = (sums(filter_ + n) for n in range(SUMS))
        parts.append(_added(_added(one, other, neon), _added(third, fourth, neon), neon))
    return parts[0] if len(parts) == 1 else taken(parts, range(lanes))


def _added(one: Expr, other: Expr, neon: str | None) -> Expr:
    """Add neighbours of two vectors of four: the results of the first come first."""
    if neon == "aarch64":
        return tirx.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp.v4i32", one, other)
    if neon == "arm":
        halves = [tirx.call_llvm_pure_intrin("int32x2", "llvm.arm.neon.vpadd.v2i32", taken([each], (0, 1)), taken([each], (2, 3))) for each in (one, other)]
        return taken(halves, range(SUMS))
    even, odd = (taken([one, other], range(first, 2 * SUMS, 2)) for first in (0, 1))
    return even + odd

