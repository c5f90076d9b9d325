"""Declare the operator for elements along a row; codegen/expand/row_elements.py writes it."""

from tvm import tirx
from tvm.ir import Call, Expr, Op, TensorLoad

from ..loop_nests import int64
from . import declare

ROW_ELEMENT = "passfit.row_element"
declare(ROW_ELEMENT)


def row_element(first: TensorLoad, read: TensorLoad, place: Expr, extent: int) -> Call:
    """Return an element `place` after `first`, in a vectorised loop; 0 outside a row of `extent` elements.

    `read` is the same element, at the place that `nearest` returns: analyses see all that is read.
    """
    return Call(Op.get(ROW_ELEMENT), [first, read, place, int64(extent)], ret_ty=first.ty)


def nearest(place: Expr, extent: int) -> Expr:
    """Return the place inside a row nearest to a place."""
    return tirx.min(tirx.max(place, int64(0)), int64(extent - 1))
