"""A transformer with dynamically quantised products keeps its weights as they are in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from benchmarks.zoo.quantised import dynamically_quantised
from benchmarks.zoo.transformer import encoder
from passfit import api
from passfit.memory import read_report
from passfit.search.settings import SearchSettings
from passfit.targets import get_target, how_to_run

from ..models import save

HOST = get_target("x86-64")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


def test_weights_take_the_bytes_of_the_file_and_results_agree(tmp_path: Path) -> None:
    model = dynamically_quantised(encoder(1, 64, 16, 2, 200))
    path = save(model, tmp_path)
    api.compile_model(path, HOST, out=tmp_path / "out", search=SearchSettings(strategy="tvm-default"))
    report = read_report(tmp_path / "out/footprint.json")
    inside = sum(numpy_helper.to_array(each).nbytes for each in model.graph.initializer)
    assert report.measured.ran
    assert report.best.weights <= 1.1 * inside
    assert (
        report.quantised.integer_share > 0.8 and report.quantised.floats.weights > 3 * report.quantised.integers.weights
    )
    assert report.measured.given.same_decisions > 0.8
    floats = [each for each in (tmp_path / "out").glob("*.so")]
    assert floats[0].stat().st_size < inside + 200_000
    assert np.isfinite(report.measured.max_rel_error)
