"""Declare the operators for sums of two and of four products; codegen/expand/pair_products.py writes them for a target."""

from tvm.ir import Call, Expr, Op, PrimType, register_op_attr
from tvm.tirx import const

PAIRS, FOURS, HALVES = "passfit.pairs", "passfit.fours", "passfit.halves"
for _name in (PAIRS, FOURS, HALVES):
    register_op_attr(_name, "TVectorizable", True)
    register_op_attr(_name, "TCallEffectKind", 1)


def pairs(weights: Expr, halves: Expr) -> Call:
    """Return w0 · low half + w1 · high half of `halves`, an int32 of two int16; `weights` are two int8 in an int16."""
    return Call(Op.get(PAIRS), [weights, halves], ret_ty=PrimType("int32"))


def fours(total: Expr, weights: Expr, values: Expr) -> Call:
    """Add the products of four int8 and four uint8, each four bytes of an int32, to an int32."""
    return Call(Op.get(FOURS), [total, weights, values], ret_ty=PrimType("int32"))


def halves(total: Expr, weights: Expr, low: Expr, high: Expr, whole: bool = False) -> Call:
    """Add the products of four int8 and four int16 to an int32.

    `weights` are the bytes of an int32: the first and the third one for the two int16 of `low`, the others for those of `high`. Both
    are loads of two neighbours each, side by side, at whole words if `whole`.
    """
    return Call(Op.get(HALVES), [total, weights, low, high, const(whole, "bool")], ret_ty=PrimType("int32"))
