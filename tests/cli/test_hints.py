"""Check that commands and options named in messages exist: a hint is to be followed as it is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import typer

import passfit
from passfit.cli.app import app

ROOT = Path(passfit.__file__).parent
#: commands of DVC that are named, with their options
_DVC: dict[str, set[str]] = {"repro": {"--keep-going"}} | {
    name: set() for name in ("add", "checkout", "init", "plots", "pull", "push", "stage")
}


def _commands() -> dict[str, set[str]]:
    """Return the options of each command, by its name; those of groups belong to their commands."""

    def listed(command: object) -> Iterator[tuple[str, set[str]]]:
        for name, each in getattr(command, "commands", {}).items():
            yield name, {option for param in each.params for option in (*param.opts, *param.secondary_opts)}
            yield from listed(each)

    return dict(listed(typer.main.get_command(app)))


def _messages() -> Iterator[tuple[Path, str]]:
    """Yield the texts in calls: of errors, of `echo`, and of all others that name a command in backticks."""
    for file in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {
            node.body[0].value
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body and isinstance(node.body[0], ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
                yield file, node.value


def test_commands_that_messages_name_exist_with_their_options():
    commands, wrong, count = _commands(), [], 0
    for file, text in _messages():
        for program, name, rest in re.findall(r"`(passfit|dvc) ([a-z]+)([^`]*)`", text):
            known = commands if program == "passfit" else _DVC
            count += 1
            options = set(re.findall(r"--[a-z][a-z-]*", rest))
            if name not in known or options - known[name]:
                wrong.append(f"{file.relative_to(ROOT)}: {text}")
    assert count > 30 and not wrong


def test_options_that_errors_name_exist():
    known, wrong = set().union(*_commands().values()), []
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error")):
                continue
            for each in ast.walk(node):
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    unknown = set(re.findall(r"(?<![\w=`-])--[a-z][a-z-]*\b", each.value)) - known
                    wrong += [f"{file.relative_to(ROOT)}: {name}" for name in unknown]
    assert not wrong
