"""Bound the sums of integer layers: Σ |x − x's zero point| · |w − w's zero point| + |bias|, per channel of the result."""

from __future__ import annotations

import numpy as np

from .quantisation import Quantisation

#: sums are int32
LIMIT = 1 << 31


def largest_sum(
    x: Quantisation, w: Quantisation, length: int, filters: np.ndarray | None = None, bias: np.ndarray | None = None
) -> int:
    """Return the largest magnitude of a sum of `length` products.

    `filters` are the weights as channels × length, int64, zero points subtracted; without them any weight is assumed.
    `bias` is int32, one for each channel.
    """
    if filters is None:
        sums = np.asarray([length * _reach(x) * _reach(w)])
    else:
        sums = np.abs(filters).sum(axis=1) * _reach(x)
    extra = np.abs(bias.astype(np.int64)) if bias is not None else np.zeros(1, np.int64)
    return int((sums + extra).max(initial=0))


def filters_of(weights: np.ndarray, w: Quantisation, axis: int) -> np.ndarray:
    """Return weights as channels × length, int64, zero points subtracted; `axis` is that of the channels."""
    rows = np.moveaxis(weights.astype(np.int64), axis, 0).reshape(weights.shape[axis], -1)
    return rows - np.asarray(w.zero, np.int64).reshape(-1, 1)


def _reach(quantisation: Quantisation) -> int:
    least, most = quantisation.limits
    return max(max(abs(least - zero), abs(most - zero)) for zero in quantisation.zero)
