"""Repos as their owners have them: PyTorch, scikit-learn, Keras, and stages of their own; real DVC sees all of them.

Each goes from `pip install passfit` to a gate that fails and then passes, in ten commands at most.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ..scaffold.test_init import write_model

pytestmark = pytest.mark.slow

#: what git has in each repo before passfit is there: see README.md
REPOS = Path(__file__).parent / "repos"
MOST_COMMANDS = 10


def budget(**sizes: str) -> str:
    """Return the command of an owner who writes budgets into params.yaml, and wants the least ram of a short search."""
    short = {
        "objective: null": "objective: ram",
        "evaluations: null": "evaluations: 2",
        "compute: 0.25": "compute: null",
    }
    edits = [f"-e 's/{old}/{new}/'" for old, new in short.items()]
    edits += [f"-e '/^targets:/,/^$/s/{what}: null/{what}: {size}/'" for what, size in sizes.items()]
    return f"sed -i {' '.join(edits)} params.yaml"


#: by repo, every command of its owner after `pip install passfit` (and a `cd` in front), with its exit code and words it says
COMMANDS: dict[str, list[tuple[str, int, str]]] = {
    # a smaller model fits: trained and exported anew, as the copied files were
    "pytorch": [
        ("dvc init -q", 0, ""),
        ("passfit init --model models/digits.onnx --target x86-64", 0, "the input 'image' (batchx1x8x8) has a batch of 1"),
        (budget(flash="14KiB"), 0, ""),
        ("dvc repro footprint", 0, "Running stage 'import-digits'"),
        ("passfit gate", 1, "flash over budget by"),
        (f"cp {REPOS}/pytorch.width-8/* models", 0, ""),
        ("dvc repro footprint", 0, "Running stage 'import-digits'"),
        ("passfit gate", 0, "checks hold"),
    ],
    # another value of the owner's own parameter, whose stage and accuracy are beside ours
    "scikit-learn": [
        ("passfit init --merge --model models/forest.onnx --target mps2-an386", 0, "+  toolchain:"),
        (budget(flash="3KiB"), 0, ""),
        ("dvc repro footprint", 0, "Stage 'train' didn't change"),
        ("passfit gate", 1, "flash over budget by"),
        ("sed -i 's/trees: 10/trees: 3/' params.yaml", 0, ""),
        ("dvc repro footprint", 0, "Running stage 'train'"),
        ("passfit gate", 0, "checks hold"),
    ],
    # what was measured tells the budget that the model needs; nothing is compiled again
    "keras": [
        ("dvc init -q", 0, ""),
        ("passfit init --model model.onnx --target mps2-an386", 0, "has a batch of 1: --shape image:0=2x8x8x1"),
        (budget(ram="1KiB"), 0, ""),
        ("dvc repro footprint", 0, "Running stage 'compile@model-mps2-an386'"),
        ("passfit gate", 1, "ram over budget by"),
        ("sed -i 's/ram: 1KiB/ram: 8KiB/' params.yaml", 0, ""),
        ("passfit gate", 0, "checks hold"),
    ],
    # growth that is meant: the owner says so, with a reason; names of stages would clash, so in a folder
    "own-stages": [
        ("passfit init --folder passfit --model models/net.onnx --target x86-64 --ci github", 0, ".github/workflows/passfit.yml"),
        ("dvc repro passfit/dvc.yaml:footprint", 0, "Stage 'export' didn't change"),
        ("git add .", 0, ""),
        ("git commit -qm 'First result'", 0, ""),
        ("sed -i s/16/64/ params.yaml", 0, ""),
        ("dvc repro passfit/dvc.yaml:footprint", 0, "Running stage 'export'"),
        ("cd passfit && passfit gate --against HEAD", 1, "If all growth on x86-64 is meant, write accepted-growth: {net: {ram: "),
        (
            "sed -i '/x86-64:/s/{budget/{accepted-growth: {net: {flash: 20KiB, ram: 4KiB, reason: four times as wide}}, budget/'"
            " passfit/params.yaml", 0, "",
        ),
        ("cd passfit && passfit gate --against HEAD", 0, "four times as wide"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_an_owner_comes_from_pip_install_to_a_red_and_a_green_gate(tmp_path, make_repo, name):
    repo = make_repo(tmp_path / "repo")
    shutil.copytree(REPOS / name, repo.root, dirs_exist_ok=True)
    if (repo.root / "dvc.yaml").exists():
        repo.repro()  # its owner has run it
    else:
        shutil.rmtree(repo.root / ".dvc")
    owned = {path: path.read_text() for path in repo.root.rglob("*.y*ml")}
    repo.run("git", "add", ".")
    repo.run("git", "commit", "-qm", "before passfit")
    assert 1 + len(COMMANDS[name]) <= MOST_COMMANDS
    gates = []
    for command, code, words in COMMANDS[name]:
        said = repo.run("bash", "-c", command, expect=code)
        assert words in said, f"{command} said:\n{said}"
        if "passfit gate" in command:
            gates.append(code)
    assert gates == [1, 0]
    for path, text in owned.items():  # but for what the owner changed
        lines = iter(re.sub(r"\d+", "N", path.read_text()).splitlines())
        assert all(line in lines for line in re.sub(r"\d+", "N", text).splitlines())


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
