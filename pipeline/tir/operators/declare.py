"""Declare operators that schedule rules write, and codegen/expand expands for a target."""

from tvm.ir import Call, Expr, Op, PrimType, register_op_attr
from tvm.tirx import const


def declare(name: str) -> str:
    """Declare an operator without effects that vectorised loops may hold; return its name."""
    register_op_attr(name, "TVectorizable", True)
    register_op_attr(name, "TCallEffectKind", 1)
    return name


def call(name: str, dtype: str, *operands: Expr | int) -> Call:
    """Return the call of an operator; numbers are int32."""
    found = [const(each, "int32") if isinstance(each, int) else each for each in operands]
    return Call(Op.get(name), found, ret_ty=PrimType(dtype))
