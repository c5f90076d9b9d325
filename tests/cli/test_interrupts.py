"""Test signals: the process ends soon, with its children and temporary files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..signals import hear_interrupts, ignore_interrupts

#: seconds after which a process counts as deaf; it should take two, and the machine may be busy
_DEAF = 30
_READY = "print(child.pid, flush=True); "
#: a call of C that takes hours, and that a signal does not end, as TVM's and LLVM's calls do
_STUCK = "hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)"
#: the same in a pool of threads, which waits for its threads when it is left
_POOL = (
    "\n        from concurrent.futures import ThreadPoolExecutor"
    "\n        with ThreadPoolExecutor(1) as pool: pool.submit(hashlib.pbkdf2_hmac, 'sha256', b'', b'', 2**31 - 1).result()"
)
#: asleep in a callback, whose exceptions Python reports and forgets, as it does those of the import's own locks
_CALLBACK = (
    "\n        import weakref"
    "\n        thing = type('Thing', (), {})()"
    "\n        kept = weakref.ref(thing, lambda _: time.sleep(1000))"
    "\n        del thing"
    "\n        time.sleep(1000)"
)
_WORK = """
import hashlib, subprocess, time
from pathlib import Path
from passfit.support.temporary_folder import temporary_folder
from passfit.support.interrupts import deadline, interruptible, patient
from passfit.support.result_folder import result_folder
with interruptible():
    with temporary_folder(Path({folder!r}), "passfit-"), result_folder(Path({folder!r}) / "out"):
        child = subprocess.Popen(["sleep", "1000"])
        {work}
"""


def _start(work: str, folder: Path, before: Callable[[], None] = hear_interrupts) -> tuple[subprocess.Popen, int]:
    """Start a process at `work`; return it with its child."""
    running = subprocess.Popen(
        [sys.executable, "-c", _WORK.format(folder=str(folder), work=work)], preexec_fn=before,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    return running, int(running.stdout.readline())


def _alive(process: int) -> bool:
    """Tell whether a killed process still runs after two seconds, which a busy machine may need."""
    for _ in range(40):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("number, code, said", [
    (signal.SIGINT, 130, "passfit: interrupted.\n"),
    (signal.SIGTERM, 143, "passfit: ended by SIGTERM.\n"),
    (signal.SIGHUP, 129, "passfit: ended by SIGHUP.\n"),
])  # fmt: skip
@pytest.mark.parametrize("work", [_STUCK, "time.sleep(1000)", _POOL, _CALLBACK])
@pytest.mark.fault(
    "SIGKILL or Ctrl-C",
    "SIGINT, SIGTERM, SIGHUP in C++, in a pool, asleep",
    "exit code 128 + signal within two seconds; no process, no folder is left",
)
def test_a_signal_ends_the_process_its_children_and_its_folders(
    work: str, number: signal.Signals, code: int, said: str, tmp_path: Path
):
    running, child = _start(_READY + work, tmp_path)
    os.kill(running.pid, number)
    _, err = running.communicate(timeout=_DEAF)
    assert (running.returncode, err) == (code, said)
    assert not _alive(child)
    assert [file for file in tmp_path.rglob("*") if file.name != "out"] == []


def test_an_interrupt_while_the_modules_of_the_command_are_loaded_leaves_no_traceback():
    code = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'passfit.cli.app': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
        "from passfit.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=hear_interrupts, capture_output=True, text=True, timeout=_DEAF
    )
    assert (done.returncode, done.stderr) == (130, "passfit: interrupted.\n")


def test_an_interrupt_that_was_ignored_from_the_start_stays_ignored(tmp_path: Path):
    running, child = _start(_READY + "child.wait()", tmp_path, ignore_interrupts)
    os.kill(running.pid, signal.SIGINT)
    time.sleep(0.2)
    os.kill(child, signal.SIGKILL)
    running.communicate(timeout=_DEAF)
    assert running.returncode == 0


def test_what_saves_its_results_has_time_for_it_after_a_first_interrupt(tmp_path: Path):
    save = (
        "\n        with patient(60):\n"
        "            try:\n"
        "                print(child.pid, flush=True); time.sleep(1000)\n"
        "            except KeyboardInterrupt:\n"
        "                time.sleep(2)\n"
        "        print('saved', flush=True); child.kill()"
    )
    running, _ = _start(save, tmp_path)
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=_DEAF)
    assert (running.returncode, out, err) == (0, "saved\n", "")


def test_a_second_interrupt_ends_what_saves_its_results(tmp_path: Path):
    running, child = _start(f"\n        with patient(1000):\n            {_READY}{_STUCK}", tmp_path)
    time.sleep(0.5)  # the call has begun, so that no handler of Python's runs
    os.kill(running.pid, signal.SIGINT)
    time.sleep(0.5)  # one signal of two at once would be lost
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=_DEAF)
    assert (running.returncode, err) == (130, "passfit: interrupted.\n")
    assert not _alive(child)


@pytest.mark.fault("a step", "stuck in C++", "exit code 2 after its time, with its name")
def test_a_step_that_is_stuck_is_given_up_and_said_so(tmp_path: Path):
    running, child = _start(
        f"\n        with deadline(0.5, 'Lowering took too long.'):\n            {_READY}{_STUCK}", tmp_path
    )
    _, err = running.communicate(timeout=_DEAF)
    assert (running.returncode, err) == (2, "passfit: Lowering took too long.\n")
    assert not _alive(child)


def test_a_stage_says_one_line_when_it_is_interrupted(tmp_path: Path):
    (tmp_path / "params.yaml").write_text("models: {}\ntargets: {}\n")
    code = (
        "from passfit.stages._common import run_stage\n"
        "def work(params):\n"
        "    '''Do it.'''\n"
        "    print('ready', flush=True)\n"
        f"    import hashlib; {_STUCK}\n"
        "run_stage(work, argv=[])\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, preexec_fn=hear_interrupts, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout.readline() == "ready\n"
    os.kill(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=_DEAF)
    assert (running.returncode, err) == (130, "passfit: interrupted.\n")
