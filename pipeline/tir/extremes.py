"""Start extremes of floats from infinity, or from the last finite number.

TVM knows the identity of a maximum by that number alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import tirx
from tvm.tirx import BufferStore, FloatImm, PrimFunc

from .expressions import map_body


def from_infinity(kernel: PrimFunc) -> PrimFunc:
    """Return `kernel` with stores of the last finite numbers changed to infinities."""
    return _change_starts(kernel, lambda value, last: math.copysign(math.inf, value) if abs(value) == last else value)


def from_finite(kernel: PrimFunc) -> PrimFunc:
    """Return `kernel` with stores of infinities changed to the last finite numbers."""
    return _change_starts(kernel, lambda value, last: math.copysign(last, value) if math.isinf(value) else value)


def pad_with_infinity(kernel: PrimFunc) -> PrimFunc:
    """Return `kernel` with every last finite number, starts and padding alike, changed to infinity."""

    def number(each: FloatImm) -> FloatImm:
        last = tirx.max_value(str(each.ty.dtype)).value
        return tirx.const(math.copysign(math.inf, each.value), str(each.ty.dtype)) if abs(each.value) == last else each

    return map_body(kernel, (FloatImm, number))


def _change_starts(kernel: PrimFunc, start: Callable[[float, float], float]) -> PrimFunc:
    """Change stores of numbers: `start` takes one and the last finite number of its dtype."""

    def store(each: BufferStore) -> BufferStore:
        if not isinstance(each.value, FloatImm):
            return each
        dtype = str(each.value.ty.dtype)
        value = start(each.value.value, tirx.max_value(dtype).value)
        return each if value == each.value.value else BufferStore(each.buffer, tirx.const(value, dtype), each.indices)

    return map_body(kernel, (BufferStore, store))
