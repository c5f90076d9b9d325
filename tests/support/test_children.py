"""SIGKILL, which nothing can answer, ends the children of a process too."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

import passfit
from passfit.support import children
from passfit.support.interrupts import _descendants

from ..models import NodeBuilder, model_of

#: seconds to wait for what takes a moment, on a busy machine
_LONG = 60.0
_CHILDREN = {
    "fork": "child = children.fork()\nif child == 0: time.sleep(1000)\nprint(child, flush=True)",
    "start": "print(children.start(['sleep', '1000']).pid, flush=True)",
    "background": "import os\nwith background(os.getpid, lambda: time.sleep(1000)) as found: print(found.of(0), flush=True); time.sleep(1000)",
}


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _await_end(processes: list[int]) -> list[int]:
    """Return the processes that still run after a while."""
    end = time.monotonic() + _LONG
    while (left := [each for each in processes if _is_alive(each)]) and time.monotonic() < end:
        time.sleep(0.05)
    return left


@pytest.mark.parametrize("kind", _CHILDREN)
@pytest.mark.fault("SIGKILL or Ctrl-C", "SIGKILL of the parent of a fork, a command, a task", "the child ends too")
def test_a_child_ends_with_its_parent(kind: str) -> None:
    code = f"import time\nfrom passfit.support import children\nfrom passfit.support.background import background\n{_CHILDREN[kind]}\ntime.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        assert _is_alive(child)
        os.kill(running.pid, signal.SIGKILL)
        assert _await_end([child]) == []


def test_a_child_whose_parent_ended_already_ends_at_once() -> None:
    code = "from passfit.support.children import end_with\nend_with(1 << 22)\nprint('goes on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=_LONG)
    assert (done.returncode, done.stdout) == (1, "")


def test_no_collection_looks_at_what_a_child_inherits() -> None:
    code = (
        "import gc, os\nfrom passfit.support import children\nfrom passfit.support.background import compute_apart\n"
        "if children.fork() == 0:\n    print(len(gc.get_objects()) < 100, flush=True)\n    os._exit(0)\n"
        "os.wait()\nprint(compute_apart(gc.get_freeze_count) > 1000, gc.get_freeze_count())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=_LONG)
    assert done.stdout == "True\nTrue 0\n", done.stderr


@pytest.mark.slow
def test_a_killed_compilation_leaves_no_worker(tmp_path: Path) -> None:
    build = NodeBuilder()
    for _ in range(24):
        build.node("Exp", build.nodes[-1].output[0] if build.nodes else "x")
    model = model_of(build.nodes, {"x": (1, 4, 8, 8)}, [build.nodes[-1].output[0]])
    onnx.save(model, tmp_path / "net.onnx")
    command = [
        sys.executable,
        "-c",
        "from passfit.cli import main; main()",
        "compile",
        "net.onnx",
        "--target",
        "x86-64",
        "--out",
        "out",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while len(found := _descendants(running.pid)) < 2:  # of the search and of the background
            assert running.poll() is None
            time.sleep(0.02)
        os.kill(running.pid, signal.SIGKILL)
        assert _await_end(found) == []


def test_a_command_that_cannot_be_started_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("")
    for command, kind in (
        (["passfit-no-such-command"], FileNotFoundError),
        (["./none"], FileNotFoundError),
        (["./text"], PermissionError),
    ):
        with pytest.raises(kind):
            children.run(command, cwd=tmp_path)
    assert children.run(["sh", "-c", "exit 7"]).returncode == 7


def test_processes_are_started_in_one_place() -> None:
    root = Path(passfit.__file__).parent
    others = {"artifacts/git.py", "backend/worker.py"}  # over in a moment; binds itself
    starts = re.compile(r"\bos\.fork\(|\bsubprocess\.(run|Popen|call|check_\w+)\(|\bProcess\(\s*target|\bpopen\(")
    found = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if starts.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"support/children.py", "support/background.py"} | others
