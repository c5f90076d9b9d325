"""Interchange the loops of a tile's sums: hoist guards and wrapped rows out of the innermost one.

    for c in 128, k in 3:                            for k in 3, c in 128:
        if 2 ≤ t + 2k + i:                    ─►         if 2 ≤ t + 2k + i:
            acc[i] += data[c, (t + 2k + i) % 18] · …         acc[i] += data[c, (t + 2k + i) % 18] · …

LLVM moves what `c` does not change out of the inner loop. Padding of a streamed row, and the row of a ring, are such guards
and places. Sums add the same products in another order.
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import TensorLoad, Var
from tvm.tirx import BufferStore, FloorDiv, FloorMod, For, IfThenElse, IntImm, PrimFunc, Select, Stmt
from tvm.tirx.analysis import undefined_vars

from ....tir.rolled_loops import ROLLED

_SERIAL = 0


def hoist_guards(kernel: PrimFunc) -> PrimFunc:
    """Interchange serial loops around sums: loops that guards or remainders depend on go outside, and are not unrolled.

    Unrolled by LLVM, the guards of all steps wait in registers (measured: 1.18 × the time).
    """

    def ordered(loop: For) -> For:
        nest = _nest(loop)
        body = nest[-1].body
        if len(nest) < 2 or _has_serial_loop(body) or not _only_sums(body, nest):
            return loop
        deciding = _deciding(body)
        outside = [each for each in nest if each.loop_var in deciding]
        if not outside or len(outside) == len(nest) or nest[: len(outside)] == outside:
            return loop
        for each in reversed([*outside, *(each for each in nest if each.loop_var not in deciding)]):
            rolled = {ROLLED: 1} if each.loop_var in deciding else {}
            body = For(
                each.loop_var, each.min, each.extent, each.kind, body, annotations={**each.annotations, **rolled}
            )
        return body

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (For, ordered)))


def _nest(loop: For) -> list[For]:
    """Return the serial loops nested without any statement between them, outermost first."""
    found = []
    stmt: Stmt = loop
    while isinstance(stmt, For) and int(stmt.kind) == _SERIAL and isinstance(stmt.extent, IntImm):
        found.append(stmt)
        stmt = stmt.body
    return found or [loop]


def _has_serial_loop(stmt: Stmt) -> bool:
    found: list[bool] = []
    tvm_ffi.structural_walk(stmt, [(For, lambda loop: found.append(int(loop.kind) == _SERIAL))])
    return any(found)


def _only_sums(stmt: Stmt, nest: list[For]) -> bool:
    """Tell whether each store adds to an element that no loop of the nest chooses."""
    found: list[bool] = []
    own = {each.loop_var for each in nest}

    def see(store: BufferStore) -> None:
        found.append(_adds(store) and own.isdisjoint(var for index in store.indices for var in undefined_vars(index)))

    tvm_ffi.structural_walk(stmt, [(BufferStore, see)])
    return bool(found) and all(found)


def _adds(store: BufferStore) -> bool:
    """Tell whether a store adds to its own element."""
    total = store.value
    if type(total).__name__ != "Add" or not isinstance(total.a, TensorLoad):
        return False
    return total.a.source.same_as(store.buffer) and tvm_ffi.structural_equal(total.a.indices, store.indices)


def _deciding(stmt: Stmt) -> set[Var]:
    """Return the variables of conditions, quotients and remainders."""
    found: set[Var] = set()
    tvm_ffi.structural_walk(
        stmt,
        [
            (IfThenElse, lambda each: found.update(undefined_vars(each.condition))),
            (Select, lambda each: found.update(undefined_vars(each.condition))),
            ((FloorMod, FloorDiv), lambda each: found.update(undefined_vars(each))),
        ],
    )
    return found
