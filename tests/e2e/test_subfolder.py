"""A folder of its own inside a repo, as real DVC sees it: one MLflow store, odd names, and models added later."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from passfit.params.params import load_params

from ..scaffold.test_init import write_model
from ..tracking.samples import Repo

pytestmark = pytest.mark.slow

NAMES = ("1", "null", "1e5")
TRACK = """\
stages:
  track:
    cmd: python -m passfit.stages.track
    always_changed: true
    deps: [params.yaml]
"""


@pytest.fixture
def repo(tmp_path, make_repo):
    return make_repo(tmp_path / "repo")


def inside(repo, folder: str):
    return type(repo)(repo.root / folder, repo.python)


def stores(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("mlflow.db"))


def test_stages_experiments_and_the_user_share_one_store_that_git_ignores(repo):
    write_model(repo.root / "models" / "a.onnx")
    (repo.root / "edge").mkdir()
    edge = inside(repo, "edge")
    edge.passfit("init", "--model", "../models/a.onnx", "--target", "x86-64", "--target", "rpi4")
    results = Repo(repo.root / "edge")  # results kept by git, so that a copy of the repo has them
    results.result("a", "rpi4")
    shutil.move(repo.root / "edge" / "out", repo.root / "edge" / "kept")
    link = "import shutil; shutil.copytree('kept', 'out', dirs_exist_ok=True)"
    stage = TRACK.replace("cmd: ", f'cmd:\n      - python -c "{link}"\n      - ')
    (repo.root / "edge" / "dvc.yaml").write_text(stage)
    repo.run("git", "add", ".")
    repo.run("git", "commit", "-qm", "results")

    ran = repo.run(repo.python, "-m", "dvc", "repro", "edge/dvc.yaml")
    said = edge.passfit("track")
    assert "already logged: a @ rpi4" in said
    (repo.root / "edge" / "params.yaml").write_text((repo.root / "edge" / "params.yaml").read_text() + "\n# touched\n")
    copied = edge.run(repo.python, "-m", "dvc", "exp", "run", "--temp")
    assert stores(repo.root) == ["edge/mlflow.db"]
    for text in (ran, said, copied):
        (uri,) = set(re.findall(r"--backend-store-uri sqlite:///(\S+)", text))
        assert Path(uri) == repo.root / "edge" / "mlflow.db"
    unseen = repo.run("git", "status", "--porcelain", "--untracked-files=all")
    assert "mlflow" not in unseen and "mlartifacts" not in unseen and "out/" not in unseen


def test_dvc_reads_odd_names_as_text_and_runs_what_was_added(repo):
    for name in NAMES:
        write_model(repo.root / f"{name}.onnx")
    repo.passfit("init", "--model", f"{NAMES[0]}.onnx", "--target", "x86-64")
    repo.passfit("add", *(f"{name}.onnx" for name in NAMES[1:]), "--target", "rpi4")
    assert list(load_params(repo.root / "params.yaml").models) == list(NAMES)
    stages = set(repo.run(repo.python, "-m", "dvc", "stage", "list", "--name-only").split())
    assert {f"compile@{name}-{target}" for name in NAMES for target in ("x86-64", "rpi4")} < stages
    ran = repo.repro("import")
    assert ran == {"toolchain"} | {f"import@{name}" for name in NAMES}
    assert all((repo.root / "out" / "models" / name / "model.onnx").is_file() for name in NAMES)
    assert "up to date" in repo.run(repo.python, "-m", "dvc", "status", "import")


def test_a_model_in_params_yaml_alone_stops_the_first_stage(repo):
    write_model(repo.root / "a.onnx")
    write_model(repo.root / "b.onnx")
    repo.passfit("init", "--model", "a.onnx", "--target", "x86-64")
    repo.edit("params.yaml", "    source: a.onnx\n", "    source: a.onnx\n  b:\n    source: b.onnx\n")
    text = repo.run(repo.python, "-m", "dvc", "repro", expect=255)
    assert "Run `passfit add b.onnx --name b`." in text and "Traceback" not in text
    assert "Running stage 'import" not in text
    repo.passfit("add", "b.onnx", "--name", "b")
    assert repo.repro("toolchain") == {"toolchain"}
    assert json.loads((repo.root / "out" / "toolchain.json").read_text())
