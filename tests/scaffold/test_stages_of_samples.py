"""DVC runs the stages of a model's samples in order, and again only when what they read changes; other stages are stood in for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from passfit.scaffold import add_to_repo, init_repo

from .test_init import repo, write_model  # noqa: F401, a fixture

pytestmark = pytest.mark.slow

#: writes each output as the digest of the inputs: what changes nothing it reads changes nothing it writes
STAND_IN = """
import hashlib, pathlib, sys, yaml
module, *words = sys.argv[1:]
stage = {"import_model": "import", "quantize": "quantize-a", "evaluate": "evaluate-a"}.get(module, module)
first, last = (words or ["none"])[0], (words or ["none"])[-1]
words_of = {"${item.model}": first, "${item}": last, "${key}": first, "${item.target}": last}
def spelled(entry):
    text = next(iter(entry)) if isinstance(entry, dict) else entry
    for name, word in words_of.items():
        text = text.replace(name, word)
    return pathlib.Path(text)
body = yaml.safe_load(open("dvc.yaml"))["stages"][stage]
body = body.get("do", body)
files = [f for each in body.get("deps", ()) for f in sorted(spelled(each).rglob("*") if spelled(each).is_dir() else [spelled(each)])]
digest = hashlib.sha256(b"".join(f.read_bytes() for f in files if f.is_file() and f.name != ".gitignore")).hexdigest()
for out in (*body.get("outs", ()), *body.get("metrics", ()), *body.get("plots", ())):
    place = spelled(out)
    for file in [place] if place.suffix else [place / name for name in ("model.onnx", "footprint.json", "sequence.json")]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{{"digest": "{digest}"}}')
open("ran.log", "a").write(f"{stage} {' '.join(words)}\\n")
"""


@pytest.fixture
def made(repo, monkeypatch) -> Path:  # noqa: F811
    """Make a repo of two models, of which a has samples and is quantised."""
    for name in ("a", "b"):
        write_model(repo / f"{name}.onnx")
    for name in ("test.npz", "train.npz"):
        (repo / name).write_bytes(name.encode())
    (repo / ".dvc").rmdir()
    from dvc.repo import Repo

    Repo.init(str(repo)).close()
    init_repo(repo, ["a.onnx", "b.onnx"], ["x86-64"], {})
    text = (repo / "params.yaml").read_text()
    own = "    data: {source: test.npz, metric: accuracy, calibration: train.npz}\n    quantize: {}\n"
    (repo / "params.yaml").write_text(text.replace("source: a.onnx\n", f"source: a.onnx\n{own}"))
    add_to_repo(repo, ["a.onnx"])
    programs = repo.parent / "bin"
    programs.mkdir()
    (programs / "stand_in.py").write_text(STAND_IN)
    (programs / "python").write_text(
        f'#!/bin/bash\ncase $2 in *.toolchain) exec {sys.executable} "$@";; '
        f'*) exec {sys.executable} {programs}/stand_in.py "${{2##*.}}" "${{@:3}}";; esac\n'
    )
    (programs / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return repo


def ran(repo: Path) -> set[str]:  # noqa: F811
    """Return the stages that `dvc repro` runs besides `toolchain`, and their models."""
    from dvc.repo import Repo

    (repo / "ran.log").unlink(missing_ok=True)
    with Repo(str(repo)) as dvc:
        dvc.reproduce()
    log = repo / "ran.log"
    return {" ".join(line.split()[:2]) for line in log.read_text().splitlines()} if log.exists() else set()


def change(repo: Path, old: str, new: str) -> None:  # noqa: F811
    text = (repo / "params.yaml").read_text()
    assert old in text
    (repo / "params.yaml").write_text(text.replace(old, new))


def test_only_what_reads_a_change_runs_again(made):
    first = ran(made)
    assert {"quantize-a a", "import a", "compile a", "compile b", "evaluate-a a", "track", "report"} <= first
    assert not {"evaluate-b b", "quantize-b b"} & first
    assert (made / "accuracies/a/x86-64.json").is_file() and not (made / "accuracies/b").exists()
    assert ran(made) == set()

    change(made, "metric: accuracy", "metric: f1")
    again = ran(made)
    assert {"quantize-a a", "evaluate-a a"} <= again and not {"compile b", "evaluate-b b", "import b"} & again

    change(made, "calibration: train.npz", "calibration: train.npz, emulated: 9")
    assert {each for each in ran(made) if not each.startswith("report")} == {"evaluate-a a", "track"}

    change(made, "    quantize: {}\n", "")
    made_again = (made / "dvc.yaml").read_text()
    add_to_repo(made, ["a.onnx"])
    assert "quantize-a:" in made_again and "quantize-a:" not in (made / "dvc.yaml").read_text()
    assert {"import a", "compile a"} <= ran(made)

    (made / "test.npz").write_bytes(b"other samples")
    assert {each for each in ran(made) if not each.startswith("report")} == {"evaluate-a a", "track"}


def test_stages_that_params_asks_for_run_from_then_on_and_what_reads_them_again(made):
    assert not {"tune a", "kernels a"} & ran(made)
    change(made, "seconds: 0,", "seconds: 9,")
    change(made, "kernels: false", "kernels: true")
    from dvc.exceptions import DvcException

    with pytest.raises(DvcException):
        ran(made)
    add_to_repo(made, targets=["x86-64"])
    assert {"tune a", "compile a", "kernels a", "tune b", "compile b", "kernels b"} <= ran(made)
    assert ran(made) == set()
