"""Convert BitShift; a shift by the width of the dtype or more leaves no bit.

C and LLVM leave its result open.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

import numpy as np
from tvm import relax
from tvm.ir import GenericConst

_SHIFTS = {"LEFT": relax.op.left_shift, "RIGHT": relax.op.right_shift}


def convert_shift(builder: relax.BlockBuilder, data: relax.Expr, by: relax.Expr, direction: str) -> relax.Expr:
    """Emit the shift of unsigned integers by others of their dtype."""
    dtype, shift = str(data.ty.dtype), _SHIFTS[direction]
    width = 8 * np.dtype(dtype).itemsize
    if isinstance(by, GenericConst) and (by.value.numpy() < width).all():
        return builder.emit(shift(data, by))
    none, last, end = (relax.const(number, dtype) for number in (0, width - 1, width))
    shifted = builder.emit(shift(data, builder.emit(relax.op.minimum(by, last))))
    return builder.emit(relax.op.where(builder.emit(relax.op.less(by, end)), shifted, none))
