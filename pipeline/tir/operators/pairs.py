"""Declare the operator for the sum of two products; codegen/expand/pair_products.py writes it for a target."""

from tvm.ir import Call, Expr, Op, PrimType, register_op_attr

PAIRS = "passfit.pairs"
register_op_attr(PAIRS, "TVectorizable", True)
register_op_attr(PAIRS, "TCallEffectKind", 1)


def pairs(weights: Expr, halves: Expr) -> Call:
    """Return w0 · low half + w1 · high half of `halves`, an int32 of two int16; `weights` are two int8 in an int16."""
    return Call(Op.get(PAIRS), [weights, halves], ret_ty=PrimType("int32"))
