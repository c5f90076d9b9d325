"""Bound the sums of integer layers: Σ |x − x's zero point| · |w − w's zero point| + |bias|, per channel of the result."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

#: sums are int32
LIMIT = 1 << 31


def largest_sum(of_x: int, filters: np.ndarray, bias: np.ndarray | None = None) -> int:
    """Return the largest magnitude of a sum.

    `of_x` is the reach of x, `filters` are the weights as channels × length, int64, zero points subtracted, or the
    reach of unknown ones; `bias` has one number for each channel.
    """
    sums = np.abs(filters).sum(axis=1) * of_x
    extra = np.abs(bias.astype(np.int64)).ravel() if bias is not None else np.zeros(1, np.int64)
    return int((sums + extra).max(initial=0))


def filters_of(weights: np.ndarray, zeros: np.ndarray, axis: int) -> np.ndarray:
    """Return weights as channels × length, int64, zero points subtracted; `axis` is that of the channels."""
    rows = np.moveaxis(weights.astype(np.int64), axis, 0).reshape(weights.shape[axis], -1)
    return rows - np.asarray(zeros, np.int64).reshape(-1, 1)


def unknown_filters(of_w: int, length: int) -> np.ndarray:
    """Return a filter of `length` weights, each of the reach of w."""
    return np.full((1, length), of_w, np.int64)


def reach(dtype: str, zeros: Iterable[int]) -> int:
    """Return the largest magnitude of a number of `dtype` less one of the zero points."""
    info = np.iinfo(dtype)
    return max(max(abs(int(info.min) - zero), abs(int(info.max) - zero)) for zero in zeros)
