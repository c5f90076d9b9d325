"""Sum sequentially in float32: the least accurate order a correct library may use.

A softmax over 18,000 classes with the largest first loses 4e-4 in this order, sixteen times as much as in ONNX Runtime's
lanes: each small term is rounded to the last place of a sum near 1.
"""

from __future__ import annotations

import numpy as np

from .double_operators import OnnxOperator, PaddedWindows


def _sum(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Sum over `axes` in float32; keep them with one element each."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    last = x.transpose(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1).astype(np.float32)
    total = np.cumsum(last, axis=-1, dtype=np.float32)[..., -1] if last.shape[-1] else np.zeros(last.shape[:-1])
    return total.astype(np.float64).reshape([1 if axis in axes else extent for axis, extent in enumerate(x.shape)])


def _reduce(x: np.ndarray, axes: object, keepdims: int | None, empty: int | None) -> tuple[np.ndarray, int]:
    """Return the sum of an ONNX reduction, and the number of elements per sum."""
    listed = [] if axes is None else np.ravel(axes).tolist()
    if not listed and empty:
        return x, 1
    chosen = tuple(sorted(int(axis) % x.ndim for axis in listed)) or tuple(range(x.ndim))
    total, count = _sum(x, chosen), int(np.prod([x.shape[axis] for axis in chosen]))
    return (total if keepdims is None or keepdims else total.squeeze(chosen)), count


class ReduceSum(OnnxOperator):
    def _run(self, x, axes=None, keepdims=None, noop_with_empty_axes=None):
        return (np.asarray(_reduce(x, axes, keepdims, noop_with_empty_axes)[0]),)


class ReduceMean(OnnxOperator):
    def _run(self, x, axes=None, keepdims=None, noop_with_empty_axes=None):
        total, count = _reduce(x, axes, keepdims, noop_with_empty_axes)
        return (np.asarray(total / count),)


class GlobalAveragePool(OnnxOperator):
    def _run(self, x):
        axes = tuple(range(2, x.ndim))
        return (_sum(x, axes) / np.prod([x.shape[axis] for axis in axes]),)


class Softmax(OnnxOperator):
    """Softmax of opset 13 and later, along one axis."""

    def _run(self, X, axis=None):
        axis = -1 if axis is None else axis
        powers = np.exp(X - X.max(axis=axis, keepdims=True)).astype(np.float32)
        return (powers / _sum(powers, (axis % X.ndim,)),)


class MatMul(OnnxOperator):
    def _run(self, a, b):
        if a.ndim < 2 or b.ndim < 2 or a.dtype.kind != "f":
            return (a @ b,)
        one, other = a.astype(np.float32), b.astype(np.float32)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        total = np.zeros((*batch, a.shape[-2], b.shape[-1]), np.float32)
        for k in range(a.shape[-1]):
            total += one[..., :, k : k + 1] * other[..., k : k + 1, :]
        return (total.astype(np.float64),)


class Conv(OnnxOperator):
    def _run(self, X, W, B=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        windows = PaddedWindows.of(X.shape[2:], W.shape[2:], strides, dilations, pads, auto_pad)
        group, padded = group or 1, windows.padded(X, 0).astype(np.float32)
        weights = W.astype(np.float32).reshape(group, W.shape[0] // group, *W.shape[1:])
        total = np.zeros((X.shape[0], group, W.shape[0] // group, *windows.out), np.float32)
        for position, slices in windows.positions():
            seen = padded[(..., *slices)].reshape(X.shape[0], group, W.shape[1], *windows.out)
            for channel in range(W.shape[1]):
                factor = weights[(slice(None), slice(None), channel, *position)]
                total += factor.reshape(*factor.shape, *(1,) * len(windows.out)) * seen[:, :, channel : channel + 1]
        result = total.reshape(X.shape[0], -1, *windows.out).astype(np.float64)
        return (result if B is None else result + B.reshape(-1, *(1,) * len(windows.out)),)


#: replacements for operators that sum in doubles; Softmax only from opset 13, where it is along one axis
OPERATORS = (ReduceSum, ReduceMean, GlobalAveragePool, MatMul, Conv)
ALONG_ONE_AXIS = (Softmax,)
