"""Move the lanes of vectors (tir/operators/moved.py) by shuffles with 0.

    moved(x[0:8], 2)    ─►    0 0 x[0:6]

A row of a window that begins in padding is a row that begins later, moved: nothing outside it is read.
"""

from __future__ import annotations

from tvm.ir import Call, Expr
from tvm.tirx import Broadcast, PrimFunc

from ...tir.operators.moved import MOVED
from .shuffle import expand_operators, take_or_zero


def expand_moved_lanes(kernel: PrimFunc) -> PrimFunc:
    """Expand the operator in a lowered, vectorised kernel."""
    return expand_operators(kernel, {MOVED: _shuffle})


def _shuffle(call: Call) -> Expr:
    vector, by = call.args
    assert isinstance(by, Broadcast), "the loop over the lanes is vectorised"
    lanes, before = vector.ty.dtype.lanes, int(by.value)
    return take_or_zero(vector, (lane - before if 0 <= lane - before < lanes else None for lane in range(lanes)))
