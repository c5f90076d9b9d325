"""Run the command in this process, and keep its output."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Done:
    """Exit code, stdout and stderr of a command, including TVM's own lines."""

    code: int
    out: str
    err: str


@pytest.fixture
def passfit(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Done]:
    """Return a function that runs `passfit ARGUMENTS` in tmp_path, and fails on a traceback."""

    def run(*arguments: object) -> Done:
        from passfit.cli.app import main

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("passfit.report.progress.EVERY", math.inf)  # a busy machine adds no lines to stderr
        monkeypatch.setattr(sys, "argv", ["passfit", *map(str, arguments)])
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        done = Done(code, *capfd.readouterr())
        assert "Traceback" not in done.err + done.out
        return done

    return run


@pytest.fixture
def refused(passfit: Callable[..., Done], tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs a command to be refused: exit code 2, one line on stderr, no file changed.

    The function returns that line without the program's name.
    """

    def run(*arguments: object) -> str:
        before = _tree(tmp_path)
        done = passfit(*arguments)
        assert done.code == 2, done
        assert done.out == ""
        lines = done.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("passfit: "), done.err
        assert _tree(tmp_path) == before
        return lines[0].removeprefix("passfit: ")

    return run


def _tree(folder: Path) -> dict[str, bytes | None]:
    """Map every path below `folder` to its content."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}
