"""Declare the operator for the lanes of a vector moved along it; codegen/expand/moved_lanes.py writes it."""

from tvm.ir import Call, Expr, Op

from ..loop_nests import int64
from . import declare

MOVED = "passfit.moved"
declare(MOVED)


def moved(lane: Expr, by: int) -> Call:
    """Return the lane `by` places before this one, in a vectorised loop; 0 where the vector has none."""
    return Call(Op.get(MOVED), [lane, int64(by)], ret_ty=lane.ty)
