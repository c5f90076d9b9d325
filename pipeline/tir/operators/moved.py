"""Declare the operator for lanes moved along a vector; codegen/expand/products.py writes it."""

from tvm.ir import Call, Expr

from ..loop_nests import int64
from .declare import call, declare

MOVED = declare("passfit.moved")


def moved(lane: Expr, by: int) -> Call:
    """Return the lane `by` places before this one, in a vectorised loop; 0 where the vector has none."""
    return call(MOVED, str(lane.ty.dtype), lane, int64(by))
