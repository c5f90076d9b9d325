"""Legalize `relax.quantize` to 8 bits, and `relax.dequantize` to float16.

quantize        clamped, then rounded by an addition: TVM calls a function that rounds, which targets without an
                instruction for it (ARMv7, RISC-V, Cortex-M4) would find in libm, for each element
dequantize      infinite where float16 ends, as in ONNX: TVM clamps
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import relax, te, tirx
from tvm.ir import Call, Expr
from tvm.relax.transform.legalize_ops import qdq
from tvm.relax.transform.legalize_ops.common import _try_convert_to_scalar_const

from ....frontend.relax.integer.requantize import to_integer


def legalize_quantize(builder: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Return the kernel call of a quantisation: a rule for LegalizeOps."""
    dtype = str(call.attrs.out_dtype)
    if dtype not in ("int8", "uint8") or str(call.args[0].ty.dtype) != "float32":
        return qdq._quantize(builder, call)

    def quantize(value: Expr, scale: Expr, zero: Expr) -> Expr:
        whole = int(zero) if isinstance(zero, tirx.IntImm) else zero.astype("int32")
        return to_integer(value / scale, whole, dtype)

    return _by_element(builder, call, quantize)


def legalize_dequantize(builder: relax.BlockBuilder, call: Call) -> relax.Expr:
    """Return the kernel call of a dequantisation: a rule for LegalizeOps."""
    dtype = str(call.attrs.out_dtype)
    if dtype != "float16" or "int" not in str(call.args[0].ty.dtype):
        return qdq._dequantize(builder, call)

    def dequantize(value: Expr, scale: Expr, zero: Expr) -> Expr:
        steps = value.astype("int32") - zero.astype("int32")
        return (steps.astype("float32") * scale.astype("float32")).astype(dtype)

    return _by_element(builder, call, dequantize)


def _by_element(builder: relax.BlockBuilder, call: Call, change: Callable[[Expr, Expr, Expr], Expr]) -> relax.Expr:
    """Return the call of a kernel that changes each element, by the scale and the zero point of its channel."""
    axis, name = int(call.attrs.axis), call.op.name.removeprefix("relax.")

    def compute(data: te.Tensor, scale: te.Tensor | Expr, zero: te.Tensor | Expr) -> te.Tensor:
        def element(*indices: Expr) -> Expr:
            return change(data[indices], *(_element(each, indices, axis) for each in (scale, zero)))

        return te.compute(data.shape, element, name=f"{name}d")

    scale, zero = (_try_convert_to_scalar_const(each) for each in call.args[1:])
    return builder.call_te(compute, call.args[0], scale, zero, primfunc_name_hint=name)


def _element(value: te.Tensor | Expr, indices: Sequence[Expr], axis: int) -> Expr:
    """Return the number of a scalar, or of the channel of an element."""
    if not isinstance(value, te.Tensor):
        return value
    if all(int(extent) == 1 for extent in value.shape):
        return value[(0,) * len(value.shape)]
    return value[indices[axis]]
