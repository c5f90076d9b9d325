"""Declare the operator for integers that ONNX bounds; codegen/checks/ writes it, as a library is asked to check them."""

from tvm.ir import Call, Expr, Op, StringImm, register_op_attr
from tvm.tirx import const

CHECKED = "passfit.checked"
register_op_attr(CHECKED, "TVectorizable", True)
register_op_attr(CHECKED, "TCallEffectKind", 1)
register_op_attr(CHECKED, "TScriptPrinterName", CHECKED.replace(".", "_"))


def checked(value: Expr, low: int, high: int, reason: str) -> Call:
    """Return `value`, an integer that has to be from `low` to `high`; `reason` says what is wrong with another."""
    bounds = [const(each, str(value.ty.dtype)) for each in (low, high)]
    return Call(Op.get(CHECKED), [value, *bounds, StringImm(reason)], ret_ty=value.ty)
