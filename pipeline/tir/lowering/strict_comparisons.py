"""Write conditions as `x < constant`, or its negation, before TVM simplifies them.

    if_then_else(32 <= i * 16 + v, a, b)    ─►    if_then_else(not i * 16 + v < 32, a, b)    ─►    if_then_else(2 <= i, a, b)

TVM (0.27) drops the small terms of this form alone. A condition on a vector's lane, which it would leave, makes its
vectoriser run the store lane by lane, and accumulators leave their registers.
"""

from __future__ import annotations

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, IRModule
from tvm.tirx import GE, GT, LE, LT, IntImm, Not, PrimFunc


@tirx.transform.prim_func_pass(opt_level=0, name="passfit.StrictComparisons")
def strict_comparisons(function: PrimFunc, _module: IRModule, _context: tvm.transform.PassContext) -> PrimFunc:
    """Replace comparisons of integers."""
    return function.with_body(tvm_ffi.structural_map(function.body, ((LE, GE, LT, GT), _strict)))


def _strict(condition: LE | GE | LT | GT) -> Expr:
    if not str(condition.a.ty.dtype).startswith("int"):
        return condition  # of NaN, both `a <= b` and `b < a` are false
    swapped = isinstance(condition, (GE, GT))
    a, b = (condition.b, condition.a) if swapped else (condition.a, condition.b)
    if isinstance(condition, (LT, GT)):
        above = _successor(a)
        return Not(LT(b, above)) if above is not None else LT(a, b)
    above = _successor(b)
    return LT(a, above) if above is not None else Not(LT(b, a))


def _successor(number: Expr) -> IntImm | None:
    """Return the next integer of the dtype of a constant (TVM adds in int32 at least); None behind the last one."""
    if not isinstance(number, IntImm):
        return None
    dtype = str(number.ty.dtype)
    return IntImm(dtype, number.value + 1) if number.value < np.iinfo(dtype).max else None
