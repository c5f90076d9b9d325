"""Test the compile stage of a repo whose import kept no model as given."""

from __future__ import annotations

from pathlib import Path

import pytest

from passfit.errors import ConfigError
from passfit.params.params import load_params
from passfit.stages.compile import compile_library


def test_an_older_dvc_yaml_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "params.yaml").write_text("models: {ocr: {source: o.onnx}}\ntargets: {rpi4: }\n")
    with pytest.raises(ConfigError, match=r"given.onnx' is missing.*passfit init --force"):
        compile_library(load_params(tmp_path / "params.yaml"), "ocr", "rpi4")
