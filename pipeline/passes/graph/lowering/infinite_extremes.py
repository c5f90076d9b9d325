"""Start the largest and the least of floats from infinity: TVM's rules start from the last finite number.

A row of nothing but -∞, such as a mask that hides every key, has the maximum -∞.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import math

import tvm_ffi
from tvm import relax, tirx
from tvm.tirx import BufferStore, FloatImm, PrimFunc

#: operators this lowers
EXTREMES = ("relax.max", "relax.min")


def legalize_extreme(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize by TVM's own rule, then replace the start; a rule for LegalizeOps."""
    made = call.op.get_attr("FLegalize")(builder, call)
    kernel = builder.get()[made.args[0]]
    builder.update_func(made.args[0], _from_infinity(kernel))
    return made


def _from_infinity(kernel: PrimFunc) -> PrimFunc:
    def start(store: BufferStore) -> BufferStore:
        value = store.value
        if not isinstance(value, FloatImm) or abs(value.value) != tirx.max_value(str(value.ty.dtype)).value:
            return store
        return BufferStore(store.buffer, tirx.const(math.copysign(math.inf, value.value), str(value.ty.dtype)), store.indices)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (BufferStore, start)))
