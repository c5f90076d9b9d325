"""Evaluate operators on a few whole numbers: extents and positions that importers compute in the graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: elements of an operand at most
_SMALL = 64
_FUNCTIONS = {
    "relax.where": np.where,
    **{f"relax.{name}": getattr(np, name) for name in ("add", "subtract", "multiply", "less", "equal", "greater")},
}
EVALUATED = frozenset({*_FUNCTIONS, "relax.take", "relax.shape_to_tensor"})


def small_result(name: str, arrays: Sequence[np.ndarray], axis: int | None) -> np.ndarray | None:
    """Return the result of an operator of EVALUATED on constants; None for large ones, floats, and positions outside."""
    if max(array.size for array in arrays) > _SMALL or any(array.dtype.kind not in "iub" for array in arrays):
        return None
    if name != "relax.take":
        return np.asarray(_FUNCTIONS[name](*arrays))
    extent = arrays[0].size if axis is None else arrays[0].shape[axis]
    if ((arrays[1] < -extent) | (arrays[1] >= extent)).any():
        return None
    return np.asarray(np.take(arrays[0], arrays[1], axis))
