"""Convert floats to integers as ONNX Runtime does on x86-64: by the processor's instruction, whose failure is a number.

    int32, int64        toward 0; the least number, if the float is NaN or too large
    narrower            by way of int32, its low bits
    uint32, uint64      as signed; from 2**31 or 2**63 on, what is above, with the highest bit turned

TVM's own conversion makes NaN and infinity 0, and takes twelve operators for int32.

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

from tvm import relax

_WIDE = ("int32", "int64", "uint32", "uint64")


def narrows_floats(data: relax.Expr, dtype: str) -> bool:
    """Tell whether a conversion makes integers of floats."""
    return "float" in str(data.ty.dtype) and "int" in dtype


def convert_to_integers(builder: relax.BlockBuilder, data: relax.Expr, dtype: str) -> relax.Expr:
    """Emit the conversion of floats to `dtype`."""
    if str(data.ty.dtype) == "float16":
        data = builder.emit(relax.op.astype(data, "float32"))
    if dtype not in _WIDE:
        return builder.emit(relax.op.astype(_to_signed(builder, data, "int32"), dtype))
    signed = dtype.removeprefix("u")
    low = _to_signed(builder, data, signed)
    if dtype == signed:
        return low
    half = relax.const(2.0 ** (int(signed[3:]) - 1), str(data.ty.dtype))
    above = _to_signed(builder, builder.emit(relax.op.subtract(data, half)), signed)
    turned = builder.emit(relax.op.bitwise_xor(above, _least(signed)))
    large = builder.emit(relax.op.greater_equal(data, half))
    return builder.emit(relax.op.astype(builder.emit(relax.op.where(large, turned, low)), dtype))


def _to_signed(builder: relax.BlockBuilder, data: relax.Expr, dtype: str) -> relax.Expr:
    """Emit int32 or int64 toward 0; the least number for a float out of range."""
    limit, kind = 2.0 ** (int(dtype[3:]) - 1), str(data.ty.dtype)
    above = builder.emit(relax.op.greater_equal(data, relax.const(-limit, kind)))
    below = builder.emit(relax.op.less(data, relax.const(limit, kind)))
    within = builder.emit(relax.op.logical_and(above, below))
    return builder.emit(relax.op.where(within, builder.emit(relax.op.astype(data, dtype)), _least(dtype)))


def _least(dtype: str) -> relax.Expr:
    return relax.const(-(1 << (int(dtype[3:]) - 1)), dtype)
