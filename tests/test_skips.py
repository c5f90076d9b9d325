"""A skip is a failure, unless its reason is on the list."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from passfit.targets import how_to_run
from passfit.targets.catalogue import load_catalogue

from .skips import is_expected

ROOT = Path(__file__).parents[1]
_CONFTEST = (
    "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport, pytest_runtest_protocol\n"
)
#: contents of a file, and what becomes of it
_FILES = [
    ("def test_a(): pytest.skip('no reason in particular')", "FAILED"),
    ("@pytest.mark.skip('not today')\ndef test_a(): pass", "ERROR"),
    ("pytest.importorskip('no_such_module')", "ERROR"),
    ("@pytest.mark.xfail\ndef test_a(): assert False", "XFAIL"),
    ("def test_a(): pytest.skip('the host cannot run x86-64-v3')", "SKIPPED"),
    ("pytest.importorskip('no_such_module', reason='the extra `crosscheck` is not installed')", "SKIPPED"),
]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the lines of a session of its own, over a file of each kind."""
    folder = tmp_path_factory.mktemp("skips")
    (folder / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{_CONFTEST}")
    for number, (test, _) in enumerate(_FILES):
        (folder / f"test_{number}.py").write_text(f"import pytest\n{test}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, "--rootdir", folder, folder], cwd=folder, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(("number", "outcome"), [(number, outcome) for number, (_, outcome) in enumerate(_FILES)])
def test_only_a_listed_reason_skips(said: list[str], number: int, outcome: str):
    kinds = {line.split()[0] for line in said if re.match(rf"[A-Z]+ .*\btest_{number}\.py", line)}
    assert kinds == {outcome}, said


@pytest.mark.parametrize("name", load_catalogue())
def test_an_emulator_that_is_not_there_is_a_listed_reason(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    runner = how_to_run(load_catalogue()[name])
    assert runner.native or (runner.command is None and is_expected(runner.how))
