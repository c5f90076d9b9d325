"""Temporary folders go with their process, however it ends; those of live processes stay."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from passfit.errors import OutputError
from passfit.support.result_folder import result_folder
from passfit.support.temporary_folder import scratch_folder, sweep, temporary_folder

HOLD = """
import sys, time
from pathlib import Path
from passfit.support.result_folder import result_folder
with result_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Run a process at work on a folder of results."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def finish(out: Path) -> None:
    with result_folder(out) as folder:
        (folder / "whole").write_text("whole")


@pytest.mark.fault(
    "SIGKILL or Ctrl-C", "SIGKILL with a folder half written", "the next run removes it; folders of live processes stay"
)
def test_the_next_run_sweeps_the_folder_of_a_killed_one(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert len(os.listdir(tmp_path / "out")) == 1, "a killed process leaves its folder"
    finish(tmp_path / "out")
    assert os.listdir(tmp_path / "out") == ["whole"]


def test_the_folder_of_a_live_process_stays(holder, tmp_path):
    before = os.listdir(tmp_path / "out")
    finish(tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == sorted([*before, "whole"])


def test_a_live_folder_of_this_process_stays(tmp_path):
    with temporary_folder(tmp_path, ".passfit-") as one, temporary_folder(tmp_path, ".passfit-") as other:
        sweep(tmp_path, ".passfit-")
        assert one.is_dir() and other.is_dir() and one != other
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["passfit-results", "passfit-abcdefgh", ".passfit-abcdefgh", "other"])
def test_a_folder_that_is_not_known_to_be_abandoned_stays(tmp_path, name):
    (tmp_path / name).mkdir()
    sweep(tmp_path, "passfit-")
    sweep(tmp_path, ".passfit-")
    assert os.listdir(tmp_path) == [name]


def test_a_folder_of_results_from_before_the_lock_goes_after_a_day(tmp_path):
    old = tmp_path / ".passfit-abcdefgh"
    old.mkdir()
    os.utime(old, (1, 1))
    finish(tmp_path)
    assert os.listdir(tmp_path) == ["whole"]


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "kept" / "files").mkdir(parents=True)
    (tmp_path / "kept" / ".passfit-lock").touch()
    (tmp_path / ".passfit-abcdefgh").symlink_to(tmp_path / "kept")
    sweep(tmp_path, ".passfit-")
    assert (tmp_path / "kept" / "files").is_dir()


@pytest.mark.fault("full disk", "TMPDIR is full", "exit code 2 with the name of the folder")
def test_a_full_scratch_folder_names_tmpdir(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OutputError, match=f"'{tmp_path}'.*TMPDIR"), scratch_folder():
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_a_full_folder_elsewhere_is_not_blamed_on_tmpdir(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match="elsewhere"), scratch_folder():
        raise OSError(errno.ENOSPC, "No space left on device", "/elsewhere/file")


def test_a_scratch_folder_that_cannot_be_made_names_tmpdir(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    with pytest.raises(OutputError, match="TMPDIR"), scratch_folder():
        pass
