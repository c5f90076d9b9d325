"""A repo that trains its models by a dvc.yaml of its own, as real DVC sees it: passfit beside it, and a model that is refused."""

from __future__ import annotations

import pytest

from ..scaffold.test_init import write_model

pytestmark = pytest.mark.slow

OWN = """\
stages:
  train:
    cmd: python -c "import shutil; [shutil.copy(f'exported/{name}.onnx', f'models/{name}.onnx') for name in 'ab']"
    deps: [exported]
    params: [epochs]
    outs: [models/a.onnx, models/b.onnx]
"""


def test_passfit_joins_in_a_folder_and_one_refused_model_stops_no_other(tmp_path, make_repo):
    repo = make_repo(tmp_path / "repo")
    for name in "ab":
        write_model(repo.root / "exported" / f"{name}.onnx", (1, 8), f"x_{name}")
    (repo.root / "models").mkdir()
    (repo.root / "dvc.yaml").write_text(OWN)
    (repo.root / "params.yaml").write_text("epochs: 3\n")
    assert repo.repro() == {"train"}

    models = ("--model", "models/a.onnx", "--model", "models/b.onnx", "--target", "x86-64")
    said = repo.passfit("init", *models, expect=2)
    assert " epochs: 3" in said and "+models:" in said and "--merge" in said and "--folder passfit" in said
    repo.passfit("init", "--folder", "passfit", *models, "--ci", "github")
    assert (repo.root / "dvc.yaml").read_text() == OWN and (repo.root / "params.yaml").read_text() == "epochs: 3\n"

    # DVC knows that training makes the models, and that a new model alone needs a new import
    assert repo.repro("passfit/dvc.yaml:import") == {
        "passfit/dvc.yaml:toolchain",
        "passfit/dvc.yaml:import@a",
        "passfit/dvc.yaml:import@b",
    }
    write_model(repo.root / "exported" / "a.onnx", (1, "n"), "x_a")
    write_model(repo.root / "exported" / "b.onnx", (1, 16), "x_b")
    text = repo.run(repo.python, "-m", "dvc", "repro", "--keep-going", "passfit/dvc.yaml:import", expect=255)
    assert "Running stage 'train'" in text and "b: x_b 1x16" in text
    edge = type(repo)(repo.root / "passfit", repo.python)
    said = edge.passfit("gate", expect=2)
    assert "ERROR a @ x86-64: no data" in said and "stage import failed: " in said and "--shape x_a=" in said
    assert "ERROR b @ x86-64: no data: there is no out/compile/b/x86-64/footprint.json. Run `dvc repro`." in said
