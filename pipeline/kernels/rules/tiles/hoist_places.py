"""Interchange the loops of a tile's sums: hoist rows wrapped by a ring out of the innermost one.

    for c in 128, k in 9:                            for k in 9, c in 128:
        acc[i] += data[c, (t + k + i) % 18] · …  ─►      acc[i] += data[c, (t + k + i) % 18] · …

LLVM moves what `c` does not change out of the inner loop. Sums add the same products in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import tvm_ffi
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import BufferStore, FloorDiv, FloorMod, For, IfThenElse, PrimFunc, Select, Stmt
from tvm.tirx.analysis import undefined_vars

from ....tir.index_grid import Unknown
from ....tir.loop_nests import axis_values, serial_loops
from ....tir.rolled_loops import MOST_PLACES, ROLLED, has_serial_loop
from ....tir.switches import switchable

_UNROLLED = 3


@switchable
def hoist_places(kernel: PrimFunc) -> PrimFunc:
    """Interchange serial loops around sums in a kernel bound to its rows: loops that guards or remainders depend on go outside.

    They are not unrolled. Loops that LLVM unrolls are left, as it moves their remainders by itself (measured: 0.45 × the time of 7
    taps of 4 rows, 1.02 × that of 2 taps of 6).
    """

    def ordered(loop: For) -> For:
        nest, body = serial_loops(loop)
        if len(nest) < 2 or has_serial_loop(body):
            return loop
        try:
            bound = _axes(body)
        except Unknown:
            return loop
        if not _only_sums(body, nest, bound):
            return loop
        used = [_used(each, bound) for each in _deciding(body)]
        if max((_count(nest, each) for each in used), default=0) <= MOST_PLACES:
            return loop
        deciding = set().union(*used)
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


def _count(nest: Sequence[For], used: Collection[Var]) -> int:
    """Count the values of an expression of such variables in all steps of a nest's innermost loop."""
    inner = next((each for each in reversed(nest) if int(each.extent) > 1), nest[-1])
    count, body = int(inner.extent) if inner.loop_var in used else 1, nest[-1].body
    while isinstance(body, For):
        count *= int(body.extent) if int(body.kind) == _UNROLLED and body.loop_var in used else 1
        body = body.body
    return count


def _axes(stmt: Stmt) -> dict[Var, Expr]:
    """Return the values of the axes of all blocks in a statement. Raises Unknown if one of them starts a sum."""
    found: dict[Var, Expr] = {}
    starts: list[bool] = []

    def see(block: SBlockRealize) -> None:
        starts.append(block.block.init is not None)
        found.update(axis_values(block))

    tvm_ffi.structural_walk(stmt, (SBlockRealize, see))
    if any(starts):
        raise Unknown("a sum starts in its first step")
    return found


def _used(expr: Expr, bound: Mapping[Var, Expr]) -> set[Var]:
    """Return the variables of an expression, with `bound` axes replaced by the variables of their values."""
    return {each for var in undefined_vars(expr) for each in (_used(bound[var], bound) if var in bound else (var,))}


def _only_sums(stmt: Stmt, nest: list[For], bound: Mapping[Var, Expr]) -> bool:
    """Return whether each store adds to an element that no loop of the nest chooses."""
    found: list[bool] = []
    own = {each.loop_var for each in nest}

    def see(store: BufferStore) -> None:
        found.append(_adds(store) and own.isdisjoint(var for index in store.indices for var in _used(index, bound)))

    tvm_ffi.structural_walk(stmt, [(BufferStore, see)])
    return bool(found) and all(found)


def _adds(store: BufferStore) -> bool:
    """Return whether a store adds to its own element."""
    total = store.value
    if type(total).__name__ != "Add" or not isinstance(total.a, TensorLoad):
        return False
    return total.a.source.same_as(store.buffer) and tvm_ffi.structural_equal(total.a.indices, store.indices)


def _deciding(stmt: Stmt) -> list[Expr]:
    """Return the conditions, quotients and remainders."""
    found: list[Expr] = []
    tvm_ffi.structural_walk(
        stmt,
        [
            (IfThenElse, lambda each: found.append(each.condition)),
            (Select, lambda each: found.append(each.condition)),
            ((FloorMod, FloorDiv), found.append),
        ],
    )
    return found
