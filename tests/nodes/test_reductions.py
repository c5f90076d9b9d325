"""Reductions compute what the operator set says: types of integers, no axes, infinities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passfit.targets import how_to_run

from .building import HOST
from .single import single, wrong

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
)  # fmt: skip
X = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4))


def _axes(op: str, opset: int, axes: list[int]) -> tuple[dict[int, np.ndarray], dict[str, list[int]]]:
    """Return axes as a constant or as an attribute."""
    if opset >= (13 if op == "ReduceSum" else 18):
        return {1: np.asarray(axes, np.int64)}, {}
    return {}, {"axes": axes}


@pytest.mark.parametrize("opset", [11, 18])
def test_no_axes_are_all_axes_or_none(opset: int, tmp_path: Path) -> None:
    cases = []
    for op in REDUCTIONS:
        constants, attributes = _axes(op, opset, [])
        x = X.astype(np.float32)
        cases.append(single(f"{op}-empty", op, [x], constants, opset=opset, **attributes))
        cases.append(single(f"{op}-missing", op, [x], opset=opset, keepdims=0))
        cases.append(single(f"{op}-scalar", op, [x[0, 0, 0]], opset=opset))
        if constants:
            cases.append(single(f"{op}-each", op, [-x], constants, opset=opset, noop_with_empty_axes=1))
            cases.append(single(f"{op}-each-without-axes", op, [-x], opset=opset, noop_with_empty_axes=1))
    assert wrong(cases, tmp_path) == {}


@pytest.mark.parametrize("opset", [11, 18])
def test_integers_stay_integers(opset: int, tmp_path: Path) -> None:
    cases = []
    for op in REDUCTIONS:
        constants, attributes = _axes(op, opset, [-1])
        for kind in (np.int32, np.int64):
            x = np.arange(-7, 17).reshape(2, 3, 4).astype(kind)
            cases.append(single(f"{op}-{kind.__name__}", op, [x], constants, opset=opset, **attributes))
    assert wrong(cases, tmp_path) == {}


def test_infinity_and_halves(tmp_path: Path) -> None:
    x = np.array([[np.inf, 1, 2], [-np.inf, -np.inf, -np.inf], [-np.inf, 1, 2], [0, 1, 2]], np.float32)
    cases = [
        single(f"{op}-infinity", op, [x], {1: [1]}) for op in ("ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceSum")
    ]
    half = np.full((2, 2048), 0.3, np.float16)
    cases += [single(f"{op}-half", op, [half], {1: [1]}) for op in REDUCTIONS if op != "ReduceProd"]
    assert wrong(cases, tmp_path) == {}
