"""Choose the tests that a change may break: those whose modules, or what these import at any depth, changed since a revision.

Programs that a test starts may run anything of the package. A file that is not a module, and not beside one, counts for the tests
that mention its name or its folder's; a change of the settings of pytest, or of what all tests share, for all.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from passfit.support.import_closure import ImportGraph

ROOT = Path(__file__).parents[1]
GRAPH = ImportGraph(
    {
        "passfit": ROOT / "pipeline",
        "passfit.stages": ROOT / "stages",
        "tests": ROOT / "tests",
        "benchmarks": ROOT / "benchmarks",
    }
)
_FOR_ALL = ("pyproject.toml", "tests/conftest.py", "tests/profiles.py")
_STARTS_PROGRAMS = re.compile(r"\b(subprocess|make_repo|sys\.executable|import passfit)\b")


def changed_files(revision: str) -> set[Path]:
    """Return the files that differ from a revision, and those that git does not know yet. Raises pytest.UsageError."""
    found: set[Path] = set()
    for command in (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(f"--changed {revision}: {done.stderr.strip()}")
        found.update(ROOT / line for line in done.stdout.splitlines())
    return found


def files_of(test: Path) -> frozenset[Path]:
    """Return the files that a test file may run or read, as far as imports tell."""
    module = GRAPH.module_of(test)
    assert module is not None
    parts = module.split(".")
    fixtures = [".".join((*parts[:end], "conftest")) for end in range(2, len(parts))]
    own = GRAPH.closure(module, *fixtures)
    if any(
        _STARTS_PROGRAMS.search(_text(file))
        for each in own
        if each.startswith("tests.") and (file := GRAPH.file_of(each))
    ):
        return GRAPH.files(module, *fixtures) | _all_modules()
    return GRAPH.files(module, *fixtures)


def is_touched(test: Path, changed: Iterable[Path]) -> bool:
    """Tell whether the tests of a file may behave otherwise since the files changed."""
    files, text = files_of(test), _text(test)
    return any(
        file in files
        or file.relative_to(ROOT).as_posix() in _FOR_ALL
        or (file not in _all_files() and (file.name in text or re.search(rf"\b{re.escape(file.parent.name)}\b", text)))
        for file in changed
    )


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that changes since the revision of `--changed` may break."""
    changed = changed_files(config.getoption("changed"))
    touched = {path: is_touched(path, changed) for path in {item.path for item in items}}
    config.hook.pytest_deselected(items=[item for item in items if not touched[item.path]])
    items[:] = [item for item in items if touched[item.path]]


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def _all_modules() -> frozenset[Path]:
    modules = [GRAPH.module_of(file) for folder in ("pipeline", "stages") for file in (ROOT / folder).rglob("*.py")]
    return GRAPH.files(*filter(None, modules))


@cache
def _all_files() -> frozenset[Path]:
    """Return the files that imports account for: modules of tests too."""
    return _all_modules() | {file for folder in ("tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")}
