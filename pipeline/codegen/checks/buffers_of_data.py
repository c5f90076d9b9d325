"""Find the buffers of a kernel that hold data: its operands and results, and what is computed from them.

A buffer of its own that only counts, as the places of a permutation do, leads nowhere that depends on an input.
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import Call, Expr, Var
from tvm.tirx import Bind, BufferStore, PrimFunc

from ...tir.expressions import loads, uses


def buffers_of_data(kernel: PrimFunc) -> frozenset[Var]:
    """Return the parameters, the buffers stored from them, and all buffers whose address is taken."""
    found: set[Var] = set(kernel.params)
    stores: list[BufferStore] = []
    bindings: list[Bind] = []

    def see(call: Call) -> None:
        if getattr(call.op, "name", "").endswith("address_of"):
            found.update(load.source for load in loads(call))

    tvm_ffi.structural_walk(kernel.body, [(BufferStore, stores.append), (Bind, bindings.append), (Call, see)])
    bound: set[Var] = set()

    def from_data(value: Expr) -> bool:
        return any(load.source in found for load in loads(value)) or any(uses(value, var) for var in bound)

    before = -1
    while before < len(found) + len(bound):
        before = len(found) + len(bound)
        bound.update(each.var for each in bindings if from_data(each.value))
        found.update(each.buffer for each in stores if from_data(each.value))
    return frozenset(found)
