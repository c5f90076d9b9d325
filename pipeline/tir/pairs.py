"""Declare the operator for the sum of two products; codegen/pair_products.py writes it for a target."""

from tvm.ir import Call, Expr, Op, PrimType, register_op_attr

PAIRS = "passfit.pairs"
register_op_attr(PAIRS, "TVectorizable", True)
register_op_attr(PAIRS, "TCallEffectKind", 1)


def pairs(one: Expr, other: Expr, halves: Expr) -> Call:
    """Return one · low half + other · high half of `halves`, an int32 of two int16."""
    return Call(Op.get(PAIRS), [one, other, halves], ret_ty=PrimType("int32"))
