"""Samples beyond the bound of verification are found among any number of samples within it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from passfit.data.samples import InputForm, Samples, read_samples
from passfit.evaluate.bound import outside_bound

from ..models import model_of

COUNT, BAD = 20, 13
MODEL = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 4]}, {"y": [1, 4]})


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    """Return samples of the input of MODEL."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(COUNT, 1, 4)).astype(np.float32))
    return read_samples(str(tmp_path / "x.npy"), [InputForm("x", np.dtype("float32"), (1, 4))])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e3])
def test_one_wrong_sample_is_named_though_all_others_differ_by_rounding(samples: Samples, wrong: float):
    numbers = list(range(COUNT))
    expected = {"y": np.stack([np.maximum(samples.inputs(number)["x"], 0) for number in numbers])}
    rounded = np.nextafter(expected["y"], np.float32(9))

    assert outside_bound(MODEL, None, samples, numbers, {"y": rounded}, expected, 1e-5) == ""
    rounded[BAD] = wrong
    said = outside_bound(MODEL, None, samples, numbers, {"y": rounded}, expected, 1e-5)
    assert f"sample {BAD}" in said
