"""Declare the operators for sums of two and of four products; codegen/expand/pair_products.py writes them for a target."""

from tvm.ir import Call, Expr, Op, PrimType
from tvm.tirx import const

from . import declare

PAIRS, FOURS, HALVES, COUPLES = "passfit.pairs", "passfit.fours", "passfit.halves", "passfit.couples"
declare(PAIRS, FOURS, HALVES, COUPLES)


def pairs(weights: Expr, halves: Expr) -> Call:
    """Return w0 · low half + w1 · high half of `halves`, an int32 of two int16; `weights` are two int8 in an int16."""
    return Call(Op.get(PAIRS), [weights, halves], ret_ty=PrimType("int32"))


def fours(total: Expr, weights: Expr, values: Expr) -> Call:
    """Add the products of four int8 and four uint8, each four bytes of an int32, to an int32."""
    return Call(Op.get(FOURS), [total, weights, values], ret_ty=PrimType("int32"))


def halves(total: Expr, weights: Expr, first: Expr, moved: int, whole: bool = False) -> Call:
    """Add the products of four int8 and four int16 to an int32.

    `weights` are the bytes of an int32, the inner two exchanged. The four int16 are neighbours in memory, so many elements behind the
    load `first`, at whole words if `whole`. Several with one `first` share its address.
    """
    return Call(
        Op.get(HALVES), [total, weights, first, const(moved, "int32"), const(whole, "bool")], ret_ty=PrimType("int32")
    )


def couples(total: Expr, one: Expr, other: Expr) -> Call:
    """Add the products of the halves of two int32, each two int16, to an int32."""
    return Call(Op.get(COUPLES), [total, one, other], ret_ty=PrimType("int32"))
