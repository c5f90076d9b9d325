"""Replace STFT and DFT by products with constant sines and cosines, which split and fuse like all others.

    STFT   a convolution over time whose filters are the windowed waves of each frequency
    DFT    a matrix product along the axis

The sums are direct: n² multiply-adds for n samples, and as many weights. Longer transforms than `_MOST` stay, and are
refused as operators that cannot be compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView

#: weights of a transform at most
_MOST = 1 << 22


def short_time_fourier(node: NodeView, build: NodeBuilder) -> None:
    """Replace STFT by a strided convolution: (batch, samples[, 1 or 2]) to (batch, frames, frequencies, 2)."""
    signal, step, window, length = node.inputs(4)
    shape, stride, weights = node.shape(signal), node.constant(step), node.constant(window)
    size = node.constant(length)
    if shape is None or stride is None or (window and weights is None) or (length and size is None):
        return
    samples = int(size.item()) if size is not None else len(weights) if weights is not None else 0
    parts = shape[2] if len(shape) == 3 else 1
    dtype = node.dtype(signal)
    waves = _waves(samples, samples, parts, bool(node.get("onesided", 1)), False)
    if waves is None or samples > shape[1] or (weights is not None and len(weights) != samples):
        return
    if weights is not None:
        waves = waves * weights.astype(np.float64).reshape(-1, 1, 1)
    filters = build.constant(waves.transpose(2, 1, 0).astype(dtype))
    if parts == 1:
        lines = build.node("Reshape", signal, build.integers(shape[0], 1, shape[1]))
    else:
        lines = build.node("Transpose", signal, perm=[0, 2, 1])
    spectra = build.node("Conv", lines, filters, strides=[int(stride.item())])
    frames = (shape[1] - samples) // int(stride.item()) + 1
    turned = build.node("Transpose", spectra, perm=[0, 2, 1])
    build.node("Reshape", turned, build.integers(shape[0], frames, waves.shape[2] // 2, 2), result=node.result)


def discrete_fourier(node: NodeView, build: NodeBuilder) -> None:
    """Replace DFT by a matrix product: (…, samples, …, 1 or 2) to (…, frequencies, …, 2), or the inverse of one side to (…, samples, …, 1)."""
    signal, length, along = node.inputs(3)
    shape, size, axes = node.shape(signal), node.constant(length), node.constant(along)
    if shape is None or len(shape) < 2 or (length and size is None) or (along and axes is None):
        return
    rank = len(shape)
    # up to opset 19 an attribute with the default 1, then an operand with the default -2
    axis = int(axes.item() if axes is not None else node.get("axis", -2 if node.graph.opset >= 20 else 1)) % rank
    onesided, inverse = bool(node.get("onesided", 0)), bool(node.get("inverse", 0))
    to_real = onesided and inverse
    if axis == rank - 1 or shape[-1] not in ((2,) if to_real else (1, 2)):
        return
    samples = int(size.item()) if size is not None else 2 * (shape[axis] - 1) if to_real else shape[axis]
    waves = _real_waves(samples, shape[axis]) if to_real else _waves(samples, shape[axis], shape[-1], onesided, inverse)
    if waves is None:
        return
    order = list(range(rank))
    order[axis], order[-2] = order[-2], order[axis]  # its own inverse
    outer = [shape[each] for each in order[:-2]]
    moved = signal if axis == rank - 2 else build.node("Transpose", signal, perm=order)
    flat = build.node("Reshape", moved, build.integers(*outer, shape[axis] * shape[-1]))
    matrix = build.constant(waves.reshape(-1, waves.shape[2]).astype(node.dtype(signal)))
    result, parts = node.result if axis == rank - 2 else "", 1 if to_real else 2
    product = build.node("MatMul", flat, matrix)
    parted = build.node("Reshape", product, build.integers(*outer, waves.shape[2] // parts, parts), result=result)
    if not result:
        build.node("Transpose", parted, result=node.result, perm=order)


def _waves(samples: int, given: int, parts: int, onesided: bool, inverse: bool) -> np.ndarray | None:
    """Return the waves of a transform over `samples`, of which `given` are there: (given, parts, 2 × frequencies).

    The real and imaginary part of a frequency lie side by side. Samples beyond the transform meet zeros. Returns None
    for a transform of none, or with too many weights.
    """
    frequencies = samples // 2 + 1 if onesided else samples
    if samples < 1 or given * parts * 2 * frequencies > _MOST:
        return None
    turns = np.outer(np.arange(given), np.arange(frequencies)) % samples
    angles = (2 if inverse else -2) * np.pi * turns / samples
    waves = np.exp(1j * angles) / (samples if inverse else 1)
    waves[samples:] = 0
    columns = [np.stack([wave.real, wave.imag], axis=-1) for wave in (waves, 1j * waves)[:parts]]
    return np.stack(columns, axis=1).reshape(given, parts, 2 * frequencies)


def _real_waves(samples: int, given: int) -> np.ndarray | None:
    """Return the waves of real samples by the `given` frequencies of one side: (given, 2, samples).

    Returns None for numbers of samples, odd or with frequencies that are not given, for which ONNX Runtime has sums of its own.
    """
    most = samples // 2
    if samples < 2 or samples % 2 or given <= most or given * 2 * samples > _MOST:
        return None
    angles = 2 * np.pi * (np.outer(np.arange(given), np.arange(samples)) % samples) / samples
    weights = np.full((given, 1), 2 / samples)
    weights[[0, most]] = 1 / samples
    weights[most + 1 :] = 0
    return np.stack([weights * np.cos(angles), -weights * np.sin(angles)], axis=1)
