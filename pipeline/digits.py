"""Train a small network on scikit-learn's handwritten digits, and write samples of it, for tutorial, demo and tests.

    python -m passfit.digits FOLDER

FOLDER then has digits.onnx, and the pictures as train/CLASS/NUMBER.png, which the network learnt, and test/CLASS/NUMBER.png,
which it did not. The seed is fixed; weights differ in their last bits between machines, as sums of floats of numpy's BLAS do.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

#: digits that the network learns; the others are left to tell its accuracy
LEARNT = 1200
#: factor from the 17 grey levels of the digits to bytes: `std` of pictures of bytes is 16 times as much
GREY = 15
_CHANNELS = (8, 16)
_EPOCHS, _BATCH, _RATE = 12, 50, 0.05


@lru_cache(1)
def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 1,797 pictures, [1, 8, 8] in [0, 1], and their labels."""
    from sklearn import datasets

    found = datasets.load_digits()
    return (found.images / 16).astype(np.float32)[:, None], found.target


def write_digits(folder: Path) -> None:
    """Write the trained network, and all pictures in folders by class: those it learnt, and the others."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(train_network(), folder / "digits.onnx")
    pictures, labels = load_digits()
    for number, (picture, label) in enumerate(zip(pictures, labels)):
        file = folder / ("train" if number < LEARNT else "test") / str(label) / f"{number:04}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((picture[0] * 16 * GREY).astype(np.uint8)).save(file)


def train_network() -> onnx.ModelProto:
    """Return the trained network, a copy of its own for each caller."""
    return onnx.ModelProto.FromString(_trained())


@lru_cache(1)
def _trained() -> bytes:
    """Train convolution, pooling, convolution and a dense layer in numpy."""
    pictures, labels = (each[:LEARNT] for each in load_digits())
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
    constants = [
        numpy_helper.from_array(array.astype(np.float32), f"{letter}{number}")
        for letter, arrays in (("w", kernels), ("b", biases))
        for number, array in enumerate(arrays)
    ]
    picture = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 1, 8, 8))
    scores = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 10))
    graph = helper.make_graph(nodes, "digits", [picture], [scores], constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


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


if __name__ == "__main__":
    write_digits(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
