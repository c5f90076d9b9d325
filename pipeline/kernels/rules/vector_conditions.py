"""Decide conditions for whole vectors: padding and ends that no vector meets in part.

if 8 v + lane < 32: …              32 is a multiple of 8: one answer for all lanes, 8 v < 32
if 5 j + (8 v + lane) / 32 < 16: … the same: 8 neighbours have one quotient
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import sym
from tvm.ir import Expr, Range, Var
from tvm.tirx import LT, FloorDiv, For, IntImm, Stmt

from ...tir.expressions import collect, replaced, uses
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import analyzer_over, int64

#: kind of a vectorized loop
VECTORIZED = 2


def is_uniform(condition: Expr, axis: Var, lanes: int) -> bool:
    """Return whether a condition has one answer for each vector of `lanes` neighbours along `axis`."""
    vector, lane = Var("vector", "int64"), Var("lane", "int64")
    analyzer = analyzer_over({lane: Range(0, int64(lanes))})
    return not uses(analyzer.simplify(replaced(condition, {axis: vector * lanes + lane})), lane)


def vectors_in(stmt: Stmt) -> dict[Var, int]:
    """Return the vectorized loops in a statement, with their extents."""
    return {loop.loop_var: int(loop.extent) for loop in collect(stmt, For) if int(loop.kind) == VECTORIZED}


def of_vectors(condition: Expr, lanes: Mapping[Var, int]) -> Expr:
    """Return the condition of a vector that has one answer for all lanes. Raises NoMatch if lanes differ."""
    for lane, extent in lanes.items():

        def quotient(each: FloorDiv, lane=lane, extent=extent) -> Expr:
            return FloorDiv(replaced(each.a, {lane: int64(0)}), each.b) if _is_aligned(each, lane, extent) else each

        condition = tvm_ffi.structural_map(condition, (FloorDiv, quotient))
        if uses(condition, lane):
            if not isinstance(condition, LT) or not _is_aligned(condition, lane, extent):
                raise NoMatch("a condition may differ between lanes")
            condition = replaced(condition, {lane: int64(0)})
    return condition


def _is_aligned(pair: FloorDiv | LT, lane: Var, extent: int) -> bool:
    """Return whether all lanes of a division or comparison equal lane 0."""
    step = sym.detect_linear_equation(pair.a, [lane])
    if not step or not isinstance(step[0], IntImm) or int(step[0]) != 1:
        return False
    known = sym.Analyzer().modular_set(sym.Analyzer().simplify(step[1]))
    return isinstance(pair.b, IntImm) and not any(int(each) % extent for each in (pair.b, known.coeff, known.base))
