"""A room is checked in time: faster files first, and what is left is said and not green."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_SESSION = """
import sys, pytest
from tests.quick import Durations, TimeLimit

class Remember:
    def pytest_configure(self, config):
        config.pluginmanager.register(Durations(config))

limit = TimeLimit(float(sys.argv[1]))
pytest.main(["-q", "--rootdir=.", "."], plugins=[Remember(), limit])
print(limit.ended, "of", limit.collected, limit.passed, "passed", limit.failed, "failed")
"""

#: a test that drops the first interrupt, as a callback of C++ may
_DEAF = """
import os, subprocess

def test_a():
    for turn in range(2):
        try:
            subprocess.run(["sleep", os.environ["WAIT"]])
        except KeyboardInterrupt:
            if turn:
                raise
"""


def _quick(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.quick", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_room_that_does_not_exist_is_refused_with_those_that_do():
    done = _quick("kernel")
    assert done.returncode == 2
    assert "'kernel' is not a room" in done.stderr and " kernels/rules," in done.stderr and " e2e," in done.stderr


def test_no_time_is_not_green():
    done = _quick("e2e", "--seconds", "0")
    assert done.returncode == 1, done.stdout
    assert "quick: 0 of " in done.stdout and " tests of e2e ran in " in done.stdout, done.stdout


def test_the_time_ends_a_session_after_its_faster_files(tmp_path: Path):
    (tmp_path / "test_a.py").write_text(_DEAF)
    (tmp_path / "test_b.py").write_text("def test_b(): pass\ndef test_c(): pass\n")

    def session(seconds: float, wait: float) -> str:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "WAIT": str(wait)}
        command = [sys.executable, "-c", _SESSION, str(seconds)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.splitlines()[-1]

    assert session(1, 300) == "0 of 3 0 passed 0 failed", "of files never timed, the first by name comes first"
    assert session(300, 0.2) == "3 of 3 3 passed 0 failed"
    assert session(8, 300) == "2 of 3 2 passed 0 failed", "what took 0.2 s comes after what took none"


def test_an_interrupt_of_a_fixture_ends_the_session_as_well(tmp_path: Path):
    (tmp_path / "test_a.py").write_text(
        "import pytest, time\n@pytest.fixture\ndef slow(tmp_path): time.sleep(300)\ndef test_a(slow): pass\n"
    )
    command = [sys.executable, "-c", _SESSION, "1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 of 1 0 passed 0 failed", done.stderr


def test_programs_that_tests_start_keep_what_python_compiles():
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    code = "import os; print('KEPT' if 'PYTHONDONTWRITEBYTECODE' not in os.environ else 'NOT KEPT')"
    session = f"import pytest; pytest.main(['-q', '--collect-only', 'tests/test_skips.py']); {code}"
    command = [sys.executable, "-c", session]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "KEPT", done.stdout


def test_the_processor_time_of_each_file_is_remembered(tmp_path: Path):
    (tmp_path / "test_a.py").write_text("import subprocess\ndef test_a(): subprocess.run(['sleep', '0'])\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "-p", "no:xdist", "."]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    (kept,) = tmp_path.rglob("processor-seconds-by-file")
    assert json.loads(kept.read_text()).keys() == {"test_a.py"}
