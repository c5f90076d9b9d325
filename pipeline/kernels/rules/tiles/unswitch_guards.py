"""Unswitch the guards of a tile of rows: one whose rows all lie inside the operand tests that once, not row by row.

    for k in 3:                                       for k in 3:
      for c, i:                                         if 4 <= first + 4 k and first + 4 k + 5 < 404:    all six rows
        if 4 <= first + 4 k + i < 404:          ─►        for c, i: acc[i] += data[c, first + 4 k + i - 4] · w[c, k]
          acc[i] += data[c, …] · w[c, k]                else: the loops as they were

The first row is known when a kernel runs, so no loop can be peeled. Between the guards of two rows LLVM loads a vector of
weights again. Unswitching: Allen and Cocke, A Catalogue of Optimizing Transformations, 1971.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import For, IfThenElse, PrimFunc, SeqStmt, Stmt

from ....tir.expressions import collect, conjuncts, distinct, is_among, map_body, uses
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import nest_loops, nested, renewed
from ....tir.row_window import takes_a_row, tensors_of
from ....tir.switches import switchable
from .unswitch_choices import throughout


@switchable
def unswitch_guards(kernel: PrimFunc) -> PrimFunc:
    """Unswitch the guards of a tiled kernel that takes its first row; return `kernel` itself for one without."""
    if not takes_a_row(kernel):
        return kernel
    tensors = tensors_of(kernel)
    first = next(param for param in kernel.params if not any(param.same_as(each) for each in tensors))

    def parts(each: SeqStmt) -> SeqStmt:
        found = [_unswitched(part, first) for part in each.seq]
        return each if all(one.same_as(other) for one, other in zip(found, each.seq)) else SeqStmt(found)

    return map_body(kernel, (SeqStmt, parts))


def _unswitched(nest: Stmt, first: Var) -> Stmt:
    """Unswitch a nest inside the loops that its guards depend on, if more loops are in them; else around all of it."""
    serial, body = nest_loops(nest, serial=True)
    loops = {loop.loop_var: int(loop.extent) for loop in collect(body, For)}
    guards = [each for each in _guards(body) if uses(each, first) and any(uses(each, var) for var in loops)]
    if not serial or not guards or collect(body, SBlockRealize):
        return nest
    deciding = [number for number, loop in enumerate(serial) if any(uses(each, loop.loop_var) for each in guards)]
    inside = deciding[-1] + 1 if deciding else 0
    inside = inside if inside < len(serial) else 0
    over = {loop.loop_var: int(loop.extent) for loop in serial[inside:]} | loops
    try:
        whole = [throughout(each, True, over) for each in guards]
    except NoMatch:
        return nest
    plain, guarded = (nested(serial[inside:], each) for each in (_without(body, guards), body))
    return nested(serial[:inside], IfThenElse(tirx.all(*whole), renewed(plain), guarded))


def _guards(body: Stmt) -> list[Expr]:
    """Return the different conditions, of guards without an alternative."""
    alone = (guard for guard in collect(body, IfThenElse) if guard.else_case is None)
    return distinct(each for guard in alone for each in conjuncts(guard.condition))


def _without(body: Stmt, guards: Sequence[Expr]) -> Stmt:
    """Drop conditions that hold."""

    def guarded(guard: IfThenElse) -> Stmt:
        left = [each for each in conjuncts(guard.condition) if guard.else_case or not is_among(each, guards)]
        return IfThenElse(tirx.all(*left), guard.then_case, guard.else_case) if left else guard.then_case

    return tvm_ffi.structural_map(body, (IfThenElse, guarded))
