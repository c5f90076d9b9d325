"""Interchange the loops of a tile's sums: hoist rows wrapped by a ring out of the innermost one.

    for c in 128, k in 9:                            for k in 9, c in 128:
        acc[i] += data[c, (t + k + i) % 18] · …  ─►      acc[i] += data[c, (t + k + i) % 18] · …

LLVM moves what `c` does not change out of the inner loop. Sums add the same products in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Var
from tvm.s_tir import SBlock
from tvm.tirx import Add, BufferStore, FloorDiv, FloorMod, For, IfThenElse, PrimFunc, Select, Stmt
from tvm.tirx.analysis import undefined_vars

from ....tir.expressions import collect
from ....tir.loop_nests import in_loops, nest_loops, nested
from ....tir.rolled_loops import MOST_PLACES, has_serial_loop, rolled
from ....tir.switches import switchable

_UNROLLED = 3


@switchable
def hoist_places(kernel: PrimFunc) -> PrimFunc:
    """Interchange serial loops around sums in a kernel bound to its rows: loops that guards or remainders depend on go outside.

    They are not unrolled. Loops that LLVM unrolls are left, as it moves their remainders by itself (measured: 0.45 × the time of 7
    taps of 4 rows, 1.02 × that of 2 taps of 6).
    """

    def ordered(loop: For) -> For:
        nest, body = nest_loops(loop, serial=True)
        if len(nest) < 2 or has_serial_loop(body):
            return loop
        if not _only_sums(body, nest):
            return loop
        used = [_used(each, body) for each in _deciding(body)]
        if max((_count(nest, each) for each in used), default=0) <= MOST_PLACES:
            return loop
        deciding = set().union(*used)
        outside = [rolled(each) for each in nest if each.loop_var in deciding]
        inside = [each for each in nest if each.loop_var not in deciding]
        if (
            not outside
            or not inside
            or [each.loop_var for each in nest] == [each.loop_var for each in outside + inside]
        ):
            return loop
        return nested([*outside, *inside], body)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (For, ordered)))


def _count(nest: Sequence[For], used: Collection[Var]) -> int:
    """Count the values of an expression of such variables in all steps of a nest's innermost loop."""
    inner = next((each for each in reversed(nest) if int(each.extent) > 1), nest[-1])
    inside, _ = nest_loops(nest[-1].body)
    counted = [inner, *(each for each in inside if int(each.kind) == _UNROLLED)]
    return prod(int(each.extent) for each in counted if each.loop_var in used)


def _used(expr: Expr, stmt: Stmt) -> set[Var]:
    """Return the loop variables that an expression in a statement depends on."""
    return set(undefined_vars(in_loops(expr, stmt)))


def _only_sums(stmt: Stmt, nest: list[For]) -> bool:
    """Return whether each store adds to an element that no loop of the nest chooses, and none starts a sum."""
    found, own = collect(stmt, BufferStore), {each.loop_var for each in nest}
    if not found or any(block.init is not None for block in collect(stmt, SBlock)):
        return False
    indices = [index for each in found for index in each.indices]
    return all(map(_adds, found)) and own.isdisjoint(var for index in indices for var in _used(index, stmt))


def _adds(store: BufferStore) -> bool:
    """Return whether a store adds to its own element."""
    own = tirx.BufferLoad(store.buffer, store.indices)
    return isinstance(store.value, Add) and tvm_ffi.structural_equal(store.value.a, own)


def _deciding(stmt: Stmt) -> list[Expr]:
    """Return the conditions, quotients and remainders."""
    choices = collect(stmt, IfThenElse, Select)
    return [*(each.condition for each in choices), *collect(stmt, FloorMod, FloorDiv)]
