"""The project's own dvc.yaml and params.yaml, as DVC reads them; nothing is built."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from passfit.params.params import load_params

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def test_every_model_meets_every_target(make_repo, tmp_path):
    repo = make_repo(tmp_path / "repo")
    for file in ("dvc.yaml", "params.yaml"):
        shutil.copy(ROOT / file, repo.root)
    params = load_params(ROOT / "params.yaml")
    pairs = [f"{model}-{target}" for model in params.models for target in params.targets]
    expected = {"toolchain", "track", "report"}
    expected |= {f"{stage}@{model}" for stage in ("import", "profile") for model in params.models}
    expected |= {f"{stage}@{pair}" for stage in ("optimize", "compile", "footprint", "kernels") for pair in pairs}
    for name, model in params.models.items():
        expected |= {f"evaluate-{name}@{target}" for target in params.targets if model.data is not None}
        expected |= {f"quantize-{name}"} if model.quantize is not None else set()
    stages = set(repo.run(repo.python, "-m", "dvc", "stage", "list", "--name-only").split())
    assert {name for name in stages if not name.startswith("fetch@")} == expected
