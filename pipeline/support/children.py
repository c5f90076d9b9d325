"""Start processes that end with this one, however it ends: SIGKILL leaves none behind.

Linux ends a child when the thread that started it ends (PR_SET_PDEATHSIG); elsewhere a thread of a forked child looks for
its parent. A parent may end before the child asks for that: so the child compares its parent afterwards.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
#: seconds between two looks at the parent, where the system does not tell of its end
_LOOKS = 0.5
#: looked up before a fork: the child of a process of several threads may wait for their locks
_PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
#: becomes a command once it is bound; `preexec_fn` would run what libraries do around a fork, in several threads at once
_BIND = f"""
import ctypes, os, sys
ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {int(signal.SIGKILL)})
os.execvp(sys.argv[2], sys.argv[2:]) if os.getppid() == int(sys.argv[1]) else os._exit(1)
"""


def fork() -> int:
    """Fork a child that ends with the thread that forks it; return 0 in it, else its number."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        begin_fork(parent)
    return child


def begin_fork(parent: int) -> None:
    """Bind this process to `parent`, and leave inherited objects out of garbage collections; call it just after the fork.

    These write to each object they look at, and so copy the pages shared with the parent: a sixth of the page faults of a
    search's workers, and a tenth of their time.
    """
    end_with(parent)
    gc.freeze()


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess:
    """Run a command that takes long as `subprocess.run` does; it ends with this process."""
    return subprocess.run(_bound(command, options.get("cwd")), **options)


def start(command: Sequence[str], **options: Any) -> subprocess.Popen:
    """Start a command that takes long as `subprocess.Popen` does; it ends with this process."""
    return subprocess.Popen(_bound(command, options.get("cwd")), **options)


def describe_end(code: int) -> str:
    """Say how a process ended that should not have, by its exit code."""
    how = f"signal {-code}, {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"its process died ({how})"


def end_with(parent: int) -> None:
    """End this process, just forked by `parent`, when that ends."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), name="passfit-parent", daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def _bound(command: Sequence[str], folder: str | Path | None) -> Sequence[str]:
    """Return the command that binds itself to this process first. Raises OSError for one that cannot be started."""
    if _PRCTL is None:
        return command
    program = command[0]
    place = str(Path(folder or ".") / program) if os.path.dirname(program) else program
    if shutil.which(place) is None:
        code = errno.EACCES if os.path.exists(place) else errno.ENOENT
        raise OSError(code, os.strerror(code), program)
    return [sys.executable, "-I", "-S", "-c", _BIND, str(os.getpid()), *command]


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOKS)
    os._exit(1)
