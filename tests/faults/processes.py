"""Start passfit with a mark in its environment, and find by it every process that it started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..signals import hear_interrupts

#: seconds for what takes a moment, on a busy machine
LONG = 60.0
_MARK = "PASSFIT_TEST_MARK"


class Marked:
    """A program of passfit's, such as `passfit.cli compile …`, in a folder; its results are kept by that folder alone."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        before: Callable[[], object] = hear_interrupts,
    ):
        self.mark = uuid.uuid4().hex
        # not strict, as users run it; with a store of its own, so that an earlier test spares no work
        unset = {"PASSFIT_STRICT", "PASSFIT_STORE"}
        kept = {name: value for name, value in os.environ.items() if name not in unset}
        own = {"PASSFIT_STORE": f"{folder}-store", _MARK: self.mark}
        environment = kept | own | dict(environment or {})
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words], cwd=folder, env={k: v for k, v in environment.items() if v}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before,
        )  # fmt: skip

    def end(self, seconds: float = 600) -> tuple[int, str, str]:
        """Wait for the end; return exit code, stdout and stderr."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    def survivors(self) -> list[str]:
        """Wait a while for the end of all processes with the mark; return the commands of those that are left."""
        end = time.monotonic() + LONG
        while (left := self._alive()) and time.monotonic() < end:
            time.sleep(0.05)
        return left

    def _alive(self) -> list[str]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"{_MARK}={self.mark}".encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:  # it ended, or is another user's
                continue
        return found


def files(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
