"""Find the buffers of a kernel that hold data: its operands and results, and what is computed from them.

A buffer of its own that only counts, as the places of a permutation do, leads nowhere that depends on an input.
"""

from __future__ import annotations

from tvm.ir import Call, Expr, Var
from tvm.tirx import Bind, BufferStore, PrimFunc, Stmt

from ...tir.expressions import collect, loads, uses


def buffers_of_data(kernel: PrimFunc) -> frozenset[Var]:
    """Return the parameters, the buffers stored from them, and all buffers whose address is taken."""
    found: set[Var] = {*kernel.params, *buffers_with_addresses(kernel.body)}
    stores, bindings = collect(kernel.body, BufferStore), collect(kernel.body, Bind)
    bound: set[Var] = set()

    def from_data(value: Expr) -> bool:
        return any(load.source in found for load in loads(value)) or any(uses(value, var) for var in bound)

    before = -1
    while before < len(found) + len(bound):
        before = len(found) + len(bound)
        bound.update(each.var for each in bindings if from_data(each.value))
        found.update(each.buffer for each in stores if from_data(each.value))
    return frozenset(found)


def buffers_with_addresses(stmt: Stmt) -> frozenset[Var]:
    """Return the buffers whose address a statement takes."""
    calls = (call for call in collect(stmt, Call) if getattr(call.op, "name", "").endswith("address_of"))
    return frozenset(load.source for call in calls for load in loads(call))
