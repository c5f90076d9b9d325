"""Check what becomes of a command whose output nobody reads."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

PASSFIT = (sys.executable, "-m", "passfit.cli")


@pytest.mark.parametrize("arguments", [("passes",), ("passes", "--markdown"), ("--help",)])
@pytest.mark.fault("closed output", "the reader of stdout leaves", "exit code 141, no traceback")
def test_a_reader_that_leaves_ends_the_command_as_a_signal_would(arguments: tuple[str, ...]):
    running = subprocess.Popen([*PASSFIT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    told = running.stderr.read()
    assert (running.wait(), told) == (141, b""), "1 would be a gate that says no"


@pytest.mark.parametrize(("command", "code"), [("passes", 0), ("explain nowhere", 2)])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_change_no_exit_code(command: str, code: int, closed: str, tmp_path: Path):
    line = f'"{sys.executable}" -m passfit.cli {command} {closed}'
    assert (
        subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ).returncode
        == code
    )


def test_the_version_is_that_of_the_package():
    shown = subprocess.run([*PASSFIT, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"passfit {version('passfit')}\n"
