"""Declare the operators for sums of two and of four products; codegen/expand/products.py writes them for a target."""

from tvm.ir import Call, Expr
from tvm.tirx import const

from .declare import call, declare

PAIRS, FOURS = declare("passfit.pairs"), declare("passfit.fours")
HALVES, COUPLES = declare("passfit.halves"), declare("passfit.couples")


def pairs(weights: Expr, halves: Expr) -> Call:
    """Return w0 · low half + w1 · high half of `halves`, an int32 of two int16; `weights` are two int8 in an int16."""
    return call(PAIRS, "int32", weights, halves)


def fours(total: Expr, weights: Expr, values: Expr) -> Call:
    """Add the products of four int8 and four uint8, each four bytes of an int32, to an int32."""
    return call(FOURS, "int32", total, weights, values)


def halves(total: Expr, weights: Expr, first: Expr, moved: int, whole: bool = False) -> Call:
    """Add the products of four int8 and four int16 to an int32.

    `weights` are the bytes of an int32, the inner two exchanged. The four int16 are neighbours in memory, so many elements behind the
    load `first`, at whole words if `whole`. Several with one `first` share its address.
    """
    return call(HALVES, "int32", total, weights, first, moved, const(whole, "bool"))


def couples(total: Expr, one: Expr, other: Expr) -> Call:
    """Add the products of the halves of two int32, each two int16, to an int32."""
    return call(COUPLES, "int32", total, one, other)
