from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from passfit.artifacts.places import quantised_model
from passfit.errors import ConfigError
from passfit.params.params import Params, load_params
from passfit.stages.quantize import quantize

from ..models import save
from ..quantise.networks import convolutional


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(model: str) -> Params:
        (tmp_path / "params.yaml").write_text(f"models: {{net: {{source: net.onnx, {model}}}}}\n")
        return load_params(tmp_path / "params.yaml")

    save(convolutional(), tmp_path, "net.onnx")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).standard_normal((9, 1, 3, 8, 8)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    return write


def test_it_writes_the_model_and_how_it_came_to_be(params):
    line = quantize(
        params("data: data.npz, quantize: {samples: 4, max-accuracy-loss: 0.3, io: int8}"), "net", "net.onnx"
    )
    record = json.loads(quantised_model("net").with_name("quantize.json").read_text())
    assert record["data"] | {"digest": ""} == {"digest": "", "samples": 9, "calibrated": 4}
    assert (record["io"], record["max_accuracy_loss"], record["target"]) == ("int8", 0.3, None)
    assert line.startswith("net: int8") and quantised_model("net").is_file()


def test_what_is_missing_is_named(params):
    with pytest.raises(ConfigError, match="models.net has no samples to quantise by. Add `data:`"):
        quantize(params("quantize: {form: int8}"), "net", "net.onnx")
    with pytest.raises(ConfigError, match="models.net.quantize is missing"):
        quantize(params("data: data.npz"), "net", "net.onnx")
