"""The small networks of benchmarks/scale.py, and its estimate."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import onnx
import pytest


@pytest.fixture
def scale(scripts: Path) -> ModuleType:
    return importlib.import_module("scale")


def test_the_networks_are_valid_different_and_the_same_every_time(scale: ModuleType):
    models = [scale.small_model(number) for number in range(scale.MODELS)]
    for model in models:
        onnx.checker.check_model(model, full_check=True)
        assert 7 <= len(model.graph.node) <= 20
    assert len({model.SerializeToString() for model in models}) == scale.MODELS
    assert scale.small_model(7).SerializeToString() == models[7].SerializeToString()


def test_an_estimate_of_what_was_measured_is_that(scale: ModuleType):
    """With imports that take the same time each, and those of which each takes longer than the one before."""
    sizes = [scale.Size(1, 6, 6, 2.0, 12.0, 5.0), scale.Size(50, 300, 294, 98.0, 588.0, 5.0)]
    one, folders = scale.estimate(sizes, 300)
    assert one == pytest.approx(700 / 3600) and folders == pytest.approx(700 / 3600)
    slower = [sizes[0], scale.Size(50, 300, 294, 98.0 + 49 * 25.5, 588.0, 5.0)]
    one, folders = scale.estimate(slower, 3000)
    assert one * 3600 == pytest.approx(500 * 2 + 500**2 / 2 + 3000 * 2) and folders < one
