from __future__ import annotations

import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import helper

from passfit.errors import ConfigError, ModelError, TargetError
from passfit.params.params import load_params
from passfit.scaffold import add_to_repo, init_repo, render_dvc_yaml

from ..frontend.source.test_keep_outputs import two_heads
from ..models import model_of


def write_model(path: Path, shape: tuple[int | str, ...] = (1, 8), name: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model_of([helper.make_node("Relu", [name], ["y"])], {name: shape}, {"y": shape}, name="tiny"), path)
    return path


@pytest.fixture
def repo(tmp_path, monkeypatch) -> Path:
    """Make a repo as `git init && dvc init` leave it, as far as init looks; the working directory is inside."""
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / ".dvc").mkdir()
    monkeypatch.chdir(root)
    return root


def files(repo: Path) -> set[str]:
    return {entry.name for entry in repo.iterdir()} - {".git", ".dvc"}


def test_it_writes_what_the_stages_read(repo):
    write_model(repo / "models" / "Key_Word.onnx")
    written = init_repo(repo, ["models/Key_Word.onnx"], ["x86-64", "rpi4"], {})
    assert [path.name for path in written] == ["dvc.yaml", "params.yaml", ".gitignore"]
    params = load_params(repo / "params.yaml")
    assert {name: model.source for name, model in params.models.items()} == {"key-word": "models/Key_Word.onnx"}
    assert list(params.targets) == ["x86-64", "rpi4"]
    expected = render_dvc_yaml(params.models, params.targets)
    assert (repo / "dvc.yaml").read_text() == expected


def test_shapes_go_to_the_models_that_have_such_an_input(repo):
    write_model(repo / "a.onnx", ("n", 8), "x")
    write_model(repo / "b.onnx", (1, 8), "z")
    init_repo(repo, ["a.onnx", "b.onnx"], ["x86-64"], {"x": (1, 8)})
    models = load_params(repo / "params.yaml").models
    assert (models["a"].shapes, models["b"].shapes) == ({"x": (1, 8)}, {})


def test_outputs_go_to_the_models_that_have_them(repo):
    two_heads(repo)
    write_model(repo / "b.onnx", (1, 8), "z")
    init_repo(repo, ["heads.onnx", "b.onnx"], ["x86-64"], {}, outputs=["scores"])
    models = load_params(repo / "params.yaml").models
    assert (models["heads"].outputs, models["b"].outputs) == (("scores",), ())
    found = (repo / "params.yaml").read_text()
    init_repo(repo, ["b.onnx"], ["x86-64"], {}, force=True)
    add_to_repo(repo, ["heads.onnx"], outputs=["scores"])
    assert load_params(repo / "params.yaml").models == models and "outputs: [scores]" in found


def test_an_absolute_path_becomes_relative(repo):
    init_repo(repo, [str(write_model(repo / "models" / "m.onnx"))], ["x86-64"], {})
    assert load_params(repo / "params.yaml").models["m"].source == "models/m.onnx"


def test_a_folder_of_its_own_inside_the_repo(repo):
    write_model(repo / "models" / "m.onnx")
    (repo / "edge").mkdir()
    init_repo(repo / "edge", ["models/m.onnx"], ["x86-64"], {})
    assert load_params(repo / "edge" / "params.yaml").models["m"].source == "../models/m.onnx"


def test_targets_of_the_repo_count(repo):
    write_model(repo / "m.onnx")
    (repo / "pyproject.toml").write_text('[tool.passfit.targets.our-board]\nbase = "rpi4"\nram = "64MiB"\n')
    init_repo(repo, ["m.onnx"], ["our-board"], {})
    assert list(load_params(repo / "params.yaml").targets) == ["our-board"]


@pytest.mark.parametrize("existing", ["dvc.yaml", "params.yaml"])
def test_it_never_overwrites_without_force(repo, existing):
    write_model(repo / "m.onnx")
    (repo / existing).write_text("theirs: 1\n")
    with pytest.raises(ConfigError, match=f"{existing} already exists.*--force"):
        init_repo(repo, ["m.onnx"], ["x86-64"], {})
    assert (repo / existing).read_text() == "theirs: 1\n"
    assert files(repo) == {"m.onnx", existing}
    init_repo(repo, ["m.onnx"], ["x86-64"], {}, force=True)
    assert load_params(repo / "params.yaml").models


def test_lines_of_gitignore_are_added_once_and_none_is_lost(repo):
    write_model(repo / "m.onnx")
    (repo / ".gitignore").write_text("/secret\n/out/")
    init_repo(repo, ["m.onnx"], ["x86-64"], {})
    once = (repo / ".gitignore").read_text()
    init_repo(repo, ["m.onnx"], ["x86-64"], {}, force=True)
    lines = (repo / ".gitignore").read_text().splitlines()
    assert once.splitlines() == lines
    assert lines[:2] == ["/secret", "/out/"]
    assert len(lines) == len(set(lines))


def test_outside_of_a_repo_it_says_how_to_make_one(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()  # not a repo to git, and what a machine has above its temporary folders is not ours
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigError, match="git init && dvc init"):
        init_repo(tmp_path, ["m.onnx"], ["x86-64"], {})


def test_without_dvc_it_says_how_to_add_it(repo):
    (repo / ".dvc").rmdir()
    with pytest.raises(ConfigError, match="dvc init"):
        init_repo(repo, ["m.onnx"], ["x86-64"], {})


@pytest.mark.parametrize(
    ("models", "targets", "shapes", "error", "message"),
    [
        ([], ["x86-64"], {}, ConfigError, "--model"),
        (["m.onnx"], [], {}, TargetError, "--target"),
        (["m.onnx"], ["rpi-4"], {}, TargetError, "rpi4"),
        (["none.onnx"], ["x86-64"], {}, ModelError, "none.onnx.*`dvc repro` or `dvc pull` first"),
        (["."], ["x86-64"], {}, ModelError, "directory"),
        (["text.onnx"], ["x86-64"], {}, ModelError, "text.onnx"),
        (["open.onnx"], ["x86-64"], {}, ModelError, "open.onnx: .*--shape x="),
        (["m.onnx"], ["x86-64"], {"q": (1,)}, ModelError, "input 'q'"),
        (["m.onnx"], ["x86-64"], {"x": (2, 8)}, ModelError, "contradicts"),
        (["../outside.onnx"], ["x86-64"], {}, ConfigError, "outside of the repo"),
    ],
)
def test_bad_input_is_one_clear_error_and_writes_nothing(repo, models, targets, shapes, error, message):
    write_model(repo / "m.onnx")
    write_model(repo / "open.onnx", (1, "n"))
    write_model(repo.parent / "outside.onnx")
    (repo / "text.onnx").write_text("not a model")
    before = files(repo)
    with pytest.raises(error, match=message):
        init_repo(repo, models, targets, shapes)
    assert files(repo) == before


def test_the_diff_is_shown_before_anything_is_overwritten(repo):
    write_model(repo / "m.onnx")
    (repo / "dvc.yaml").write_text("stages:\n  train: {cmd: make}\n")
    shown: list[str] = []
    with pytest.raises(ConfigError, match="dvc.yaml already exists.*--merge.*--folder"):
        init_repo(repo, ["m.onnx"], ["x86-64"], show=shown.append)
    first, diff = shown
    assert "\n   train: {cmd: make}" in diff and "+  toolchain:" in diff
    assert "Use --merge" in first and first.endswith("Nothing is written yet. --merge would write:")
    init_repo(repo, ["m.onnx"], ["x86-64"], force=True, show=shown.append)
    assert "-  train: {cmd: make}" in shown[2] and "+  toolchain:" in shown[2] and len(shown) == 3


def test_what_cannot_be_merged_with_is_said_before_the_diff_of_a_replacement(repo):
    write_model(repo / "m.onnx")
    (repo / "dvc.yaml").write_text("stages:\n  import: {cmd: make}\n")
    shown: list[str] = []
    with pytest.raises(ConfigError, match="a stage 'import' already"):
        init_repo(repo, ["m.onnx"], ["x86-64"], show=shown.append)
    assert "Use --folder passfit" in shown[0] and shown[0].endswith("--force would write:")
    assert "-  import: {cmd: make}" in shown[1]
