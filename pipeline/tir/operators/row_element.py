"""Declare the operators for elements along a row, and lanes moved along a vector; codegen/expand/row_elements.py writes them."""

from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from ..loop_nests import int64
from .declare import call, declare

ROW_ELEMENT, MOVED = declare("passfit.row_element"), declare("passfit.moved")


def row_element(first: TensorLoad, read: TensorLoad, place: Expr, extent: int) -> Call:
    """Return an element `place` after `first`, in a vectorised loop; 0 outside a row of `extent` elements.

    `read` is the same element, at the place that `nearest` returns: analyses see all that is read.
    """
    return call(ROW_ELEMENT, str(first.ty.dtype), first, read, place, int64(extent))


def nearest(place: Expr, extent: int) -> Expr:
    """Return the place inside a row nearest to a place."""
    return tirx.min(tirx.max(place, int64(0)), int64(extent - 1))


def moved(lane: Expr, by: int) -> Call:
    """Return the lane `by` places before this one, in a vectorised loop; 0 where the vector has none."""
    return call(MOVED, str(lane.ty.dtype), lane, int64(by))
