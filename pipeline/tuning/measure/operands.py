"""Make random operands for a kernel, and compare the results of two schedules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm.tirx import PrimFunc

from ...verify.runner import numpy_dtype

#: argument of a kernel: a tensor or a number
Value = np.ndarray | int
#: largest difference between two schedules' results, relative to their range: sums in another order
_TOLERANCE, _TOLERANCE_OF_HALVES = 1e-5, 4e-3


def random_operands(kernel: PrimFunc, seed: int, case: int) -> list[np.ndarray | None]:
    """Make an array for each tensor parameter, None for a number.

    Integers of more than 8 bits are 0, a valid index; smaller ones are 0 or 1.
    """
    generator = np.random.default_rng([seed, case])
    found: list[np.ndarray | None] = []
    for param in kernel.params:
        shape = getattr(param.ty, "shape", None)
        if shape is None:
            found.append(None)
            continue
        extents, dtype = [int(extent) for extent in shape], numpy_dtype(str(param.ty.dtype))
        found.append(_values(generator, extents, dtype, case))
    return found


def close(one: np.ndarray, other: np.ndarray, tolerance: float = _TOLERANCE) -> bool:
    """Return whether two results agree up to the order of sums: within `tolerance` of the largest magnitude."""
    if one.dtype.kind not in "f" and one.dtype.name != "bfloat16":
        return bool((one == other).all())
    # 16-bit floats have three digits
    tolerance = tolerance if one.dtype.itemsize > 2 else _TOLERANCE_OF_HALVES
    one, other = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(other)
    if not np.array_equal(np.isfinite(one), finite):
        return False
    scale = float(np.abs(other[finite]).max(initial=0.0))
    return bool(np.abs(one[finite] - other[finite]).max(initial=0.0) <= tolerance * scale)


def _values(generator: np.random.Generator, shape: Sequence[int], dtype: np.dtype, case: int) -> np.ndarray:
    if dtype == np.bool_ or dtype in (np.int8, np.uint8):
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return np.zeros(shape, dtype)
    # case 1 is positive: square roots and logarithms of negative numbers are NaN
    return (generator.standard_normal(shape) if case == 0 else generator.random(shape) + 0.5).astype(dtype)
