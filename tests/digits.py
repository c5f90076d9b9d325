"""A small convolutional network trained on the handwritten digits of scikit-learn, as ONNX, in floats and quantised."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import helper

from tests.models import model_of

#: digits that the network learns; the others are left to tell its accuracy
LEARNT = 1200
_CHANNELS = (8, 16)
_EPOCHS, _BATCH, _RATE = 12, 50, 0.05


@lru_cache(1)
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 1,797 pictures, [1, 8, 8] in [0, 1], and their labels."""
    from sklearn.datasets import load_digits

    found = load_digits()
    return (found.images / 16).astype(np.float32)[:, None], found.target


@lru_cache(1)
def float_model() -> onnx.ModelProto:
    """Train convolution, pooling, convolution and a dense layer in numpy, and return the network."""
    pictures, labels = (each[:LEARNT] for each in digits())
    random = np.random.default_rng(0)
    shapes = [(_CHANNELS[0], 9), (_CHANNELS[1], 9 * _CHANNELS[0]), (10, 16 * _CHANNELS[1])]
    weights = [random.normal(0, (2 / shape[1]) ** 0.5, shape) for shape in shapes]
    biases = [np.zeros(shape[0]) for shape in shapes]
    moved = [np.zeros(shape) for shape in shapes]
    for _ in range(_EPOCHS):
        for rows in np.array_split(random.permutation(LEARNT), LEARNT // _BATCH):
            gradients = _gradients(pictures[rows].astype(np.float64), labels[rows], weights, biases)
            for place, (by_weight, by_bias) in enumerate(gradients):
                moved[place] = 0.9 * moved[place] - _RATE * by_weight
                weights[place] += moved[place]
                biases[place] -= _RATE * by_bias
    kernels = [weights[0].reshape(-1, 1, 3, 3), weights[1].reshape(-1, _CHANNELS[0], 3, 3), weights[2]]
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1] * 4),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("MaxPool", ["r0"], ["p0"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p0", "w1", "b1"], ["c1"], pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Flatten", ["r1"], ["f"]),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["y"], transB=1),
    ]
    constants = {f"w{number}": each.astype(np.float32) for number, each in enumerate(kernels)}
    constants |= {f"b{number}": each.astype(np.float32) for number, each in enumerate(biases)}
    return model_of(nodes, {"x": (1, 1, 8, 8)}, {"y": (1, 10)}, constants, name="digits")


def _windows(images: np.ndarray) -> np.ndarray:
    """Return the 3 × 3 windows around each pixel, [N, channels × 9, pixels]."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    found = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return found.transpose(0, 1, 4, 5, 2, 3).reshape(len(images), -1, images.shape[2] * images.shape[3])


def _gradients(
    images: np.ndarray, labels: np.ndarray, weights: list, biases: list
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the gradients of the cross entropy by weights and biases, layer by layer."""
    count = len(images)
    first = _windows(images)
    one = np.maximum(weights[0] @ first + biases[0][:, None], 0).reshape(count, -1, 4, 2, 4, 2)
    pooled = one.max((3, 5))
    second = _windows(pooled)
    two = np.maximum(weights[1] @ second + biases[1][:, None], 0)
    scores = two.reshape(count, -1) @ weights[2].T + biases[2]
    likely = np.exp(scores - scores.max(1, keepdims=True))
    by_scores = (likely / likely.sum(1, keepdims=True) - np.eye(10)[labels]) / count
    by_two = (by_scores @ weights[2]).reshape(two.shape) * (two > 0)
    by_second = (weights[1].T @ by_two).reshape(count, -1, 3, 3, 4, 4)
    by_padded = np.zeros((count, pooled.shape[1], 6, 6))
    for row in range(3):
        for column in range(3):
            by_padded[:, :, row : row + 4, column : column + 4] += by_second[:, :, row, column]
    by_pooled = by_padded[:, :, 1:5, 1:5][:, :, :, None, :, None]
    by_one = (by_pooled * (one == pooled[:, :, :, None, :, None]) * (one > 0)).reshape(count, -1, 64)
    return [
        (np.einsum("nop,nip->oi", by_one, first), by_one.sum((0, 2))),
        (np.einsum("nop,nip->oi", by_two, second), by_two.sum((0, 2))),
        (by_scores.T @ two.reshape(count, -1), by_scores.sum(0)),
    ]


@lru_cache(1)
def quantised_model() -> onnx.ModelProto:
    """Quantise the network by onnxruntime's quantiser, calibrated on digits: QDQ, signed bytes, per channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Pictures(CalibrationDataReader):
        def __init__(self) -> None:
            self._left: Iterator[np.ndarray] = iter(digits()[0][:LEARNT:12])

        def get_next(self) -> dict[str, np.ndarray] | None:
            picture = next(self._left, None)
            return None if picture is None else {"x": picture[None]}

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # the quantiser recommends a preparation that this network does not need
    try:
        with TemporaryDirectory() as folder:
            file, out = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
            onnx.save(float_model(), file)
            quantize_static(
                file, out, Pictures(), quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip
            return onnx.load(out)
    finally:
        root.setLevel(level)


def save_digits(folder: Path, count: int | None = None, first: int = LEARNT) -> Path:
    """Write the digits that the network has not learnt, with labels, to an .npz."""
    pictures, labels = (each[first:][:count] for each in digits())
    np.savez(folder / "digits.npz", x=pictures, labels=labels)
    return folder / "digits.npz"
