"""Hide the trip counts of loops marked `rolled`, so that LLVM does not unroll them; TVM passes it no other word.

    for j in range(3)    ─►    for j in range(int(arithmetic.fence(3.0)))

The fence is not an instruction, and LLVM computes nothing across it.
"""

from __future__ import annotations

from tvm import tirx
from tvm.tirx import For, PrimFunc

from ...tir.expressions import map_body
from ...tir.rolled_loops import is_rolled
from ...tir.switches import switchable

_FENCE = "llvm.arithmetic.fence"


@switchable
def hide_trip_counts(kernel: PrimFunc) -> PrimFunc:
    """Hide the trip count of each marked loop in a lowered kernel."""

    def hidden(loop: For) -> For:
        if not is_rolled(loop):
            return loop
        count = tirx.call_llvm_pure_intrin("float32", _FENCE, tirx.const(float(int(loop.extent)), "float32"))
        return For(loop.loop_var, loop.min, count.astype(str(loop.extent.ty.dtype)), loop.kind, loop.body)

    return map_body(kernel, (For, hidden))
