"""NaN goes where ONNX Runtime lets it go, and infinity is a number like others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passfit.targets import how_to_run

from ..frontend.onnx_nodes import NodeCase
from .building import HOST
from .single import single, wrong

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


NAN, INF = np.nan, np.inf
X = np.array([NAN, -INF, INF, -0.0, 0, 1, -1, 3, -3, 0.2, NAN, 6.5], np.float32)
Y = np.array([1, NAN, -1, 0, NAN, 2, 2, INF, -INF, 5, NAN, NAN], np.float32)


def _bounds() -> list[NodeCase]:
    low, high = np.float32(0), np.float32(6)
    return [
        single("Clip", "Clip", [X], {1: low, 2: high}),
        single("Clip-low", "Clip", [X], {1: low}),
        single("Clip-of-no-bounds", "Clip", [X]),
        single("Clip-of-set-6", "Clip", [X], opset=10, min=0.0),
        single("Clip-of-computed-bounds", "Clip", [X, low, high]),
        single("Max-of-number", "Max", [X], {1: low}),
        single("Min-of-number-first", "Min", [X], {0: low}),
        single("Max-of-line-of-one", "Max", [X], {1: np.full(1, low)}),
        single("Max-of-line-of-one-and-two", "Max", [X, Y], {1: np.full(1, low)}),
        single("Min-of-more-dimensions", "Min", [X], {0: np.full((1, 1), low)}),
        *(single(f"{op}-of-two", op, [X, Y]) for op in ("Max", "Min")),
        *(single(f"{op}-of-three", op, [Y, X, X[::-1]]) for op in ("Max", "Min")),
        *(single(f"{op}-of-column", op, [X, Y[:4].reshape(-1, 1)]) for op in ("Max", "Min")),
    ]


def _elementwise() -> list[NodeCase]:
    ops = "Relu Elu Selu HardSigmoid LeakyRelu ThresholdedRelu Shrink Sign Sigmoid Tanh Erf Softplus"
    kinds = (np.float32, np.float64)
    cases = [single(f"{op}-{kind.__name__}", op, [X.astype(kind)]) for op in ops.split() for kind in kinds]
    return [
        *cases,
        single("Celu", "Celu", [X]),
        single("LeakyRelu-of-infinity", "LeakyRelu", [X], alpha=np.inf),
        single("PRelu", "PRelu", [X, Y]),
        *(single(f"Mul-by-{zero}", "Mul", [X], {1: np.float32(zero)}) for zero in (0.0, -0.0)),
        single("Div-of-zero", "Div", [X], {0: np.float32(0)}),
    ]


def _rows() -> list[NodeCase]:
    x = np.array(
        [[NAN, 1, 3, 2], [1, NAN, 3, 2], [1, 3, 2, NAN], [-INF, -INF, -INF, -INF], [NAN] * 4, [INF, 1, -INF, 0]],
        np.float32,
    )
    cases = []
    for kind in (np.float32, np.float16):
        for op in ("ArgMax", "ArgMin"):
            cases += [
                single(f"{op}-{axis}-{last}-{kind.__name__}", op, [x.astype(kind)], axis=axis, select_last_index=last)
                for axis in (0, 1)
                for last in (0, 1)
            ]
        for op in ("ReduceMax", "ReduceMin"):
            cases += [single(f"{op}-{axis}-{kind.__name__}", op, [x.astype(kind)], {1: [axis]}) for axis in (0, 1)]
    for largest in (0, 1):
        cases.append(single(f"TopK-{largest}", "TopK", [x[:3]], {1: [3]}, results=2, largest=largest))
    return [
        *cases,
        *(single(f"{op}-{axis}", op, [x], axis=axis) for op in ("Softmax", "LogSoftmax") for axis in (0, 1)),
    ]


def _windows() -> list[NodeCase]:
    image = np.full((1, 2, 5, 5), -INF, np.float32)
    image[0, 1, 2] = 3
    return [
        single("MaxPool", "MaxPool", [image], kernel_shape=[2, 2]),
        single("MaxPool-dilated", "MaxPool", [image], kernel_shape=[2, 2], dilations=[2, 1], pads=[1, 1, 1, 1]),
    ]


def test_nan_passes_bounds_and_functions(tmp_path: Path) -> None:
    assert wrong([*_bounds(), *_elementwise()], tmp_path) == {}


def test_nan_and_infinity_in_rows_and_windows(tmp_path: Path) -> None:
    assert wrong([*_rows(), *_windows()], tmp_path) == {}
