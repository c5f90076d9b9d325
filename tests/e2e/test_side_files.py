"""Weights beside a model's own file, as real DVC sees them: retraining that changes only these reruns the import."""

from __future__ import annotations

import json

import pytest

from passfit.params.params import ModelParams
from passfit.scaffold import render_dvc_yaml

from ..frontend.source.test_side_files import save_split

pytestmark = pytest.mark.slow


def canonical(repo) -> str:
    return json.loads((repo.root / "out/models/net/origin.json").read_text())["canonical"]


def test_new_weights_alone_are_imported_from_links_too_and_an_older_repo_is_told(tmp_path, make_repo):
    repo = make_repo(tmp_path / "repo")
    model = repo.root / "models" / "net.onnx"

    def train(weight: float) -> None:
        """Export the model anew; DVC keeps its files, as links into the cache."""
        for file in (model, model.with_name("net.onnx.data")):
            file.unlink(missing_ok=True)
        save_split(model, weight, "net.onnx.data")
        repo.run(repo.python, "-m", "dvc", "add", "-q", "models/net.onnx", "models/net.onnx.data")

    repo.run(repo.python, "-m", "dvc", "config", "cache.type", "symlink")
    train(1.0)
    assert model.is_symlink() and model.with_name("net.onnx.data").is_symlink()
    repo.passfit("init", "--model", "models/net.onnx", "--target", "x86-64")
    assert repo.repro("import-net") == {"toolchain", "import-net"}
    first = canonical(repo)
    train(2.0)
    assert "import-net" in repo.repro("import-net") and canonical(repo) != first

    # dvc.yaml as an older passfit wrote it
    watching = (repo.root / "dvc.yaml").read_text()
    (repo.root / "dvc.yaml").write_text(render_dvc_yaml({"net": ModelParams(source="models/net.onnx")}, ["x86-64"]))
    text = repo.run(repo.python, "-m", "dvc", "repro", "import", expect=255)
    assert "'models/net.onnx.data', which dvc.yaml does not watch" in text and "Traceback" not in text
    repo.passfit("add", "models/net.onnx", "--name", "net")
    assert (repo.root / "dvc.yaml").read_text() == watching
    train(1.0)
    assert "import-net" in repo.cold().repro("import-net") and canonical(repo) == first
