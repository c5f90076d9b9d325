"""Round sums to quantised numbers, the same on every target.

    clamp(value, least - zero, most - zero), to the nearest even, + zero

The bounds are whole numbers, so it does not matter whether values are clamped or rounded first. Adding 1.5 × 2**23 to a
small float32 leaves its rounded value in the last bits (Knuth, The Art of Computer Programming, volume 2, section 4.2.2,
exercise 19): one addition on targets with and without an instruction that rounds.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr

#: 1.5 × 2**23, and its bits as an integer
_ROUND, _ROUND_BITS = 12582912.0, 0x4B400000


def to_integer(value: Expr, zero: Expr | int, dtype: str) -> Expr:
    """Return round(value) + zero in `dtype`, saturated. `value` is float32, `zero` int32 or a number; NaN is the least."""
    least, most = int(tirx.min_value(dtype)), int(tirx.max_value(dtype))
    if isinstance(zero, int):
        low, high = (tirx.const(float(bound - zero), "float32") for bound in (least, most))
        shift: Expr = tirx.const(zero - _ROUND_BITS, "int32")
    else:
        low, high = ((tirx.const(bound, "int32") - zero).astype("float32") for bound in (least, most))
        shift = zero - tirx.const(_ROUND_BITS, "int32")
    clamped = tirx.max(tirx.min(value, high), low)
    rounded = tirx.reinterpret("int32", clamped + tirx.const(_ROUND, "float32"))
    return (rounded + shift).astype(dtype)
