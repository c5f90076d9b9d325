"""Legalize `relax.quantize` to 8 bits, and `relax.dequantize` to float16.

quantize        clamped, then rounded by an addition: TVM calls a function that rounds, which targets without an
                instruction for it (ARMv7, RISC-V, Cortex-M4) would find in libm, for each element
dequantize      infinite where float16 ends, as in ONNX: TVM clamps
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import relax, te, tirx
from tvm.ir import Call, Expr
from tvm.relax.transform.legalize_ops import qdq
from tvm.relax.transform.legalize_ops.common import _try_convert_to_scalar_const

from ....frontend.relax.integer.requantize import to_integer


def legalize_quantize(builder: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Return the kernel call of a quantisation: a rule for LegalizeOps."""
    axis, dtype = int(call.attrs.axis), str(call.attrs.out_dtype)
    if dtype not in ("int8", "uint8") or str(call.args[0].ty.dtype) != "float32":
        return qdq._quantize(builder, call)

    def quantize(data: te.Tensor, scale: te.Tensor | Expr, zero: te.Tensor | Expr) -> te.Tensor:
        def element(*indices: Expr) -> Expr:
            by, shift = (_element(each, indices, axis) for each in (scale, zero))
            whole = int(shift) if isinstance(shift, tirx.IntImm) else shift.astype("int32")
            return to_integer(data[indices] / by, whole, dtype)

        return te.compute(data.shape, element, name="quantized")

    scale, zero = (_try_convert_to_scalar_const(each) for each in call.args[1:])
    return builder.call_te(quantize, call.args[0], scale, zero, primfunc_name_hint="quantize")


def legalize_dequantize(builder: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Return the kernel call of a dequantisation: a rule for LegalizeOps."""
    axis, dtype = int(call.attrs.axis), str(call.attrs.out_dtype)
    if dtype != "float16" or "int" not in str(call.args[0].ty.dtype):
        return qdq._dequantize(builder, call)

    def dequantize(data: te.Tensor, scale: te.Tensor | Expr, zero: te.Tensor | Expr) -> te.Tensor:
        def element(*indices: Expr) -> Expr:
            by, shift = (_element(each, indices, axis) for each in (scale, zero))
            steps = data[indices].astype("int32") - shift.astype("int32")
            return (steps.astype("float32") * by.astype("float32")).astype(dtype)

        return te.compute(data.shape, element, name="dequantized")

    scale, zero = (_try_convert_to_scalar_const(each) for each in call.args[1:])
    return builder.call_te(dequantize, call.args[0], scale, zero, primfunc_name_hint="dequantize")


def _element(value: te.Tensor | Expr, indices: Sequence[Expr], axis: int) -> Expr:
    """Return the number of a scalar, or of the channel of an element."""
    if not isinstance(value, te.Tensor):
        return value
    if all(int(extent) == 1 for extent in value.shape):
        return value[(0,) * len(value.shape)]
    return value[indices[axis]]
