"""Scatters count places in the shape of the data, whatever the shape of the updates."""

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


SHAPE = (5, 4, 6)


@pytest.mark.parametrize("reduction", ["none", "add", "min"])
def test_fewer_updates_than_data_along_any_axis(reduction: str, tmp_path: Path) -> None:
    random, cases = np.random.default_rng(0), []
    for kind in (np.float32, np.int64):
        data = random.integers(-9, 9, SHAPE).astype(kind)
        for axis in (0, 1, -1):
            for shape in ((2, 3, 4), (5, 3, 6), (5, 4, 3)):
                updates = random.integers(-9, 9, shape).astype(kind)
                # places are unique along the axis, and negative ones count from the end
                order = np.argsort(
                    random.random([SHAPE[axis] if place == axis % 3 else each for place, each in enumerate(shape)]),
                    axis=axis,
                )
                places = np.take(order, range(shape[axis]), axis=axis)
                places = np.where(random.random(shape) < 0.5, places, places - SHAPE[axis])
                name = f"{kind.__name__}-{axis}-{shape}"
                cases.append(single(name, "ScatterElements", [data, places, updates], axis=axis, reduction=reduction))
    assert wrong(cases, tmp_path) == {}


def test_truth_values_are_joined(tmp_path: Path) -> None:
    data, updates = np.array([True, False, True, False]), np.array([True, True, False, False, True])
    places = np.array([0, 1, 2, -1, 1])
    cases = [single(f"{how}", "ScatterElements", [data, places, updates], reduction=how) for how in ("add", "mul")]
    cases += [
        single(f"ND-{how}", "ScatterND", [data, places[:, None], updates], reduction=how) for how in ("add", "mul")
    ]
    assert wrong(cases, tmp_path) == {}
