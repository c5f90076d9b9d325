"""The arithmetic of a quantised layer, written down as plainly as NumPy can, in 64-bit sums."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def requantised(total: Array, step: Array, zero: int, dtype: str) -> Array:
    """Return the numbers of a sum: times a float32 step, rounded half to even, plus the zero point, saturated."""
    info = np.iinfo(dtype)
    assert np.abs(total).max(initial=0) < 1 << 31
    value = total.astype(np.float32) * step.astype(np.float32)
    return np.clip(np.rint(value).astype(np.float64) + zero, info.min, info.max).astype(dtype)


def step_of(x_scale: float, w_scale: Array, y_scale: float) -> Array:
    """Return x's scale · w's scale ÷ y's scale in float32, in this order."""
    return np.float32(x_scale) * np.asarray(w_scale, np.float32) / np.float32(y_scale)


def convolved(x: Array, w: Array, pads: int, stride: int, groups: int) -> Array:
    """Return the int64 sums of a convolution; x: batch × channels × …, w: filters × channels of a group × …"""
    spatial = tuple(range(2, x.ndim))
    x = np.pad(x.astype(np.int64), [(0, 0), (0, 0), *[(pads, pads)] * len(spatial)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=spatial)
    windows = windows[(slice(None), slice(None), *[slice(None, None, stride)] * len(spatial))]
    inside = w.shape[1]
    letters = "uvw"[: len(spatial)], "abc"[: len(spatial)]
    sums = []
    for filter_, weights in enumerate(w.astype(np.int64)):
        group = filter_ // (len(w) // groups)
        part = windows[:, group * inside : (group + 1) * inside]
        sums.append(np.einsum(f"nc{letters[0]}{letters[1]},c{letters[1]}->n{letters[0]}", part, weights))
    return np.stack(sums, axis=1)


def transposed(x: Array, w: Array, pads: int, stride: int, extra: int, groups: int) -> Array:
    """Return the int64 sums of a transposed convolution; w: channels × filters of a group × …; `extra` is added at the ends."""
    inside, each, taps = x.shape[1] // groups, w.shape[1], w.shape[2:]
    whole = [(size - 1) * stride + extent + extra for size, extent in zip(x.shape[2:], taps)]
    sums = np.zeros((len(x), each * groups, *whole), np.int64)
    for place in np.ndindex(*x.shape[2:]):
        at = tuple(slice(i * stride, i * stride + extent) for i, extent in zip(place, taps))
        for group in range(groups):
            part = slice(group * inside, (group + 1) * inside)
            added = np.tensordot(x[(slice(None), part, *place)].astype(np.int64), w[part].astype(np.int64), 1)
            sums[(slice(None), slice(group * each, (group + 1) * each), *at)] += added
    return sums[(slice(None), slice(None), *(slice(pads, size - pads) for size in whole))]
