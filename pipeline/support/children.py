"""Start processes that end with this one, however it ends: SIGKILL leaves none behind.

Linux ends a child when the thread that started it ends (PR_SET_PDEATHSIG); elsewhere a thread of a forked child looks for
its parent. A parent may end before the child asks for that: so the child compares its parent afterwards.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
#: seconds between two looks at the parent, where the system does not tell of its end
_LOOKS = 0.5
#: looked up before a fork: the child of a process of several threads may wait for their locks
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def fork() -> int:
    """Fork a child that ends with the thread that forks it; return 0 in it, else its number."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        end_with(parent)
    return child


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess:
    """Run a command as `subprocess.run` does; it ends with this process."""
    return subprocess.run(command, preexec_fn=_bound(), **options)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen:
    """Start a command as `subprocess.Popen` does; it ends with this process."""
    return subprocess.Popen(command, preexec_fn=_bound(), **options)


def describe_end(code: int) -> str:
    """Say how a process ended that should not have, by its exit code."""
    return f"its process died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"


def end_with(parent: int) -> None:
    """End this process, just forked by `parent`, when that ends."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), name="passfit-parent", daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _bound() -> Callable[[], None] | None:
    """Return what a command does before it begins; nothing where the system cannot bind it."""
    parent = os.getpid()
    return None if _PRCTL is None else lambda: end_with(parent)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS)
    os._exit(1)
