"""A skip is a failure, unless its reason is on the list."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from passfit.targets import how_to_run
from passfit.targets.catalogue import load_catalogue

from .skips import is_expected

ROOT = Path(__file__).parents[1]
_CONFTEST = "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport\n"


def _run(folder: Path, test: str) -> str:
    """Return the closing line of a session of its own, over one file that holds `test`."""
    (folder / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{_CONFTEST}")
    (folder / "test_one.py").write_text(f"import pytest\n{test}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.mark.parametrize(
    ("test", "closing"),
    [
        ("def test_a(): pytest.skip('no reason in particular')", "1 failed"),
        ("@pytest.mark.skip('not today')\ndef test_a(): pass", "1 error"),
        ("pytest.importorskip('no_such_module')", "1 error"),
        ("@pytest.mark.xfail\ndef test_a(): assert False", "1 xfailed"),
        ("def test_a(): pytest.skip('the host cannot run x86-64-v3')", "1 skipped"),
        ("pytest.importorskip('no_such_module', reason='the extra `crosscheck` is not installed')", "1 skipped"),
    ],
)
def test_only_a_listed_reason_skips(tmp_path: Path, test: str, closing: str):
    said = _run(tmp_path, test)
    assert said.splitlines()[-1].startswith(closing), said


@pytest.mark.parametrize("name", load_catalogue())
def test_an_emulator_that_is_not_there_is_a_listed_reason(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    runner = how_to_run(load_catalogue()[name])
    assert runner.native or (runner.command is None and is_expected(runner.how))
