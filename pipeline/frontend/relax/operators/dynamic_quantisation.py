"""Convert DynamicQuantizeLinear so that zeros alone have the scale 1, as in ONNX Runtime: TVM divides 0 by 0.

    scale = (high − low) / 255, or 1        zero = round(−low / scale)        low, high: of the data and 0

Imports TVM: only imported once a graph is made.
"""

from __future__ import annotations

from tvm import relax

_STEPS = 255


def convert_dynamic_quantisation(builder: relax.BlockBuilder, data: relax.Expr) -> relax.Tuple:
    """Emit the bytes, their scale and their zero point."""
    none, one, steps = (relax.const(float(number), "float32") for number in (0, 1, _STEPS))
    low = builder.emit(relax.op.minimum(none, builder.emit(relax.op.min(data))))
    high = builder.emit(relax.op.maximum(none, builder.emit(relax.op.max(data))))
    width = builder.emit(relax.op.subtract(high, low))
    alike = builder.emit(relax.op.equal(width, none))
    scale = builder.emit(relax.op.where(alike, one, builder.emit(relax.op.divide(width, steps))))
    place = builder.emit(relax.op.subtract(none, builder.emit(relax.op.divide(low, scale))))
    whole = builder.emit(relax.op.round(builder.emit(relax.op.clip(place, 0, _STEPS))))
    zero = builder.emit(relax.op.astype(whole, "uint8"))
    return relax.Tuple([builder.emit(relax.op.quantize(data, scale, zero, axis=0, out_dtype="uint8")), scale, zero])
