"""Move the lanes of vectors (tir/operators/moved.py) by shuffles with 0.

    moved(x[0:8], 2)    ─►    0 0 x[0:6]

A row of a window that begins in padding is a row that begins later, moved: nothing outside it is read.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm.tirx import Broadcast, PrimFunc

from ...tir.operators.moved import MOVED
from .shuffle import taken


def with_moved_lanes(kernel: PrimFunc) -> PrimFunc:
    """Expand the operator in a lowered, vectorised kernel."""
    body = tvm_ffi.structural_map(kernel.body, (Call, lambda call: _shuffled(call) if _is_moved(call) else call))
    return kernel if body.same_as(kernel.body) else kernel.with_body(body)


def _is_moved(call: Call) -> bool:
    return getattr(call.op, "name", "") == MOVED


def _shuffled(call: Call) -> Expr:
    vector, by = call.args
    assert isinstance(by, Broadcast), "the loop over the lanes is vectorised"
    lanes, before = vector.ty.dtype.lanes, int(by.value)
    zero = tirx.const(0, vector.ty.dtype)
    return taken([vector, zero], (lane - before if 0 <= lane - before < lanes else lanes for lane in range(lanes)))
