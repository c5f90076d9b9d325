"""Activations, powers and conversions in every dtype, with attributes that are seldom met."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from passfit.targets import how_to_run

from .building import HOST
from .single import single, wrong

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


X = np.random.default_rng(0).standard_normal((3, 17)) * 3
FLOATS = (np.float16, np.float32, np.float64)


@pytest.mark.parametrize("kind", FLOATS)
def test_activations(kind: type, tmp_path: Path) -> None:
    x = X.astype(kind)
    cases = [
        single(f"{op}-{alpha}", op, [x], alpha=alpha) for op in ("Elu", "ThresholdedRelu") for alpha in (0.5, -0.7)
    ]
    cases += [
        single(f"Shrink-{limit}-{bias}", "Shrink", [x], lambd=limit, bias=bias)
        for limit in (0.5, 0.0, -1.0)
        for bias in (0.0, 1.5, -2.0)
    ]
    cases += [single("Selu", "Selu", [x], alpha=0.5, gamma=2.0), single("Selu-scalar", "Selu", [x[0, 0]])]
    if kind is np.float32:
        cases += [
            single("Celu-scalar", "Celu", [x[0, 0]]),
            *(single(f"Celu-{alpha}", "Celu", [x], alpha=alpha) for alpha in (0.5, -0.7)),
        ]
    cases += [
        single("Mish", "Mish", [x]),
        single("PRelu-scalar", "PRelu", [x[0, 0], kind(0.5)]),
        single("PRelu-rows", "PRelu", [x, x[0]]),
    ]
    planes = X[:2, :15].reshape(2, 5, 1, 3).astype(kind)
    # ONNX Runtime has no LRN of float64, and ONNX's evaluator adds other channels
    narrow = single("LRN", "LRN", [planes.astype(np.float32)], size=3, alpha=0.5, bias=2.0)
    response = single("LRN", "LRN", [planes], size=3, alpha=0.5, bias=2.0)
    cases.append(replace(response, outputs=(narrow.outputs[0].astype(kind),)) if kind is np.float64 else response)
    if kind is np.float32:
        cases += [single("MeanVariance", "MeanVarianceNormalization", [planes], axes=[1, 2])]
    assert wrong(cases, tmp_path) == {}


def test_integers(tmp_path: Path) -> None:
    cases = []
    for kind in (np.int8, np.uint8, np.int32, np.int64):
        x = np.arange(-9 if np.dtype(kind).kind == "i" else 0, 10).astype(kind)
        cases += [
            single(f"Shrink-{kind.__name__}-{limit}", "Shrink", [x], lambd=limit, bias=1.5) for limit in (1.5, -1.0)
        ]
        cases.append(single(f"Sign-{kind.__name__}", "Sign", [x]))
    for kind in (np.int32, np.int64):
        base, exponent = np.array([-2, -3, 2, 3, 10, 0, 7, -1], kind), np.array([31, 40, 80, -1, -2, 5, 30, -3], kind)
        cases += [single(f"Pow-{kind.__name__}", "Pow", [base, exponent], opset=15)]
        cases += [
            single(f"Pow-{kind.__name__}-{number}", "Pow", [base * 70000], {1: kind(number)}, opset=15)
            for number in (2, 3, 7)
        ]
    odd = np.array([-2.0, 2.0, -1.0], np.float32)
    cases.append(single("Pow-of-large-odd", "Pow", [odd, np.array([2**31 - 1, 5, 2**31 - 1], np.int32)], opset=15))
    cases.append(single("Pow-of-more-dimensions", "Pow", [odd], {1: np.float32([[2]])}, opset=15))
    cases.append(single("Equal", "Equal", [np.array([True, False]), np.array([[True], [False]])]))
    assert wrong(cases, tmp_path) == {}


def test_floats_to_integers(tmp_path: Path) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, -1.5, 300.7, 2147483520, 0.9], np.float32)
    words = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
    kinds = {word: onnx.helper.np_dtype_to_tensor_dtype(np.dtype(word)) for word in words}
    cases = [
        single(f"{word}-{kind.__name__}", "Cast", [x.astype(kind)], to=number)
        for word, number in kinds.items()
        for kind in (np.float32, np.float64)
    ]
    cases += [single(f"like-{word}", "CastLike", [x], {1: np.zeros(1, word)}) for word in words]
    assert wrong(cases, tmp_path) == {}
