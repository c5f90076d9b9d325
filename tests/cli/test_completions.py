"""Completion in a shell: the words of each option, and what installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand

from passfit.cli.app import app
from passfit.cli.completions import COMPLETERS, STRATEGY_NAMES
from passfit.gate.formats import FORMATS
from passfit.package import KINDS
from passfit.targets import load_catalogue

PROGRAM = typer.main.get_command(app)
COMMANDS: dict[str, TyperCommand] = {**PROGRAM.commands, **PROGRAM.commands["bench"].commands}
#: options that complete, by command; `remove` and `compare` complete arguments
COMPLETED = [
    (name, option) for name, command in COMMANDS.items() for param in command.params for option in param.opts
    if option in COMPLETERS or f"{name} {option}" in COMPLETERS
]  # fmt: skip


def completed(line: str, folder: Path) -> list[str]:
    """Return the words that bash shows for the last one of a line."""
    command = [sys.executable, "-m", "passfit.cli"]
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_PASSFIT_COMPLETE": "complete_bash"}
    done = subprocess.run(command, cwd=folder, env=os.environ | asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout.split()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    models = "models: {face: {source: face.onnx}, voice: {source: voice.onnx}}\ntargets: {rpi4: {}}\n"
    (tmp_path / "params.yaml").write_text(models, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("command", "option"), COMPLETED)
def test_words_of_an_option_are_completed_by_their_beginning(command: str, option: str, repo: Path, monkeypatch):
    monkeypatch.chdir(repo)
    param = next(each for each in COMMANDS[command].params if option in each.opts)
    context = typer.Context(COMMANDS[command])
    words = [each.value for each in param.shell_complete(context, "")]
    own = COMPLETERS.get(f"{command} {option}") or COMPLETERS[option]
    assert words == list(own()) and len(words) == len(set(words))
    for word in words:
        assert word in [each.value for each in param.shell_complete(context, word[:2])]
    assert [each.value for each in param.shell_complete(context, "no such word")] == []


def test_every_completer_belongs_to_a_parameter():
    params = {(name, word) for name, each in COMMANDS.items() for p in each.params for word in (p.name, *p.opts)}
    for key in COMPLETERS:
        command, _, word = key.rpartition(" ")
        assert any(word == found and command in ("", name) for name, found in params), key


def test_names_of_strategies_are_those_there_are():
    from passfit.search.strategies import STRATEGIES

    assert list(STRATEGIES) == list(STRATEGY_NAMES)


def test_bash_asks_the_program(repo: Path):
    assert completed("passfit comp", repo) == ["compile", "compare"]
    assert completed("passfit remove f", repo) == ["face"]
    assert completed("passfit compile model.onnx --target rpi", repo) == [
        each for each in load_catalogue(repo).readable() if each.startswith("rpi")
    ]
    assert completed("passfit package build --kind c", repo) == [each for each in KINDS if each.startswith("c")]
    assert completed("passfit gate --format j", repo) == [each for each in FORMATS if each.startswith("j")]
    assert completed("passfit compile mod", repo) == []  # bash completes files


def test_a_broken_repo_completes_nothing(repo: Path):
    (repo / "params.yaml").write_text("models: [", encoding="utf-8")
    assert completed("passfit remove f", repo) == []


def test_revisions_are_those_of_git(repo: Path):
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "one"], ["tag", "v1"]):
        subprocess.run([*git, *command], cwd=repo, check=True)
    assert completed("passfit compare ", repo) == ["main", "v1"]
    assert completed("passfit report --against v", repo) == ["v1"]


def test_completing_loads_nothing_heavy(repo: Path):
    code = "import sys; from passfit.cli.completions import COMPLETERS; [list(c()) for c in COMPLETERS.values()]; "
    heavy = "print({'tvm', 'mlflow', 'dvc', 'onnx', 'onnxruntime'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + heavy], cwd=repo, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str, repo: Path):
    program = Path(sys.executable).with_name("passfit")
    shown = subprocess.run(
        [program, "--show-completion", shell],
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"_PASSFIT_COMPLETE=complete_{shell}" in shown.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=shown.stdout, text=True, check=True)
