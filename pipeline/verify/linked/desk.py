"""Run an image on a device on the desk, by the runner of its target: a command of the user's that uploads, runs and fetches."""

from __future__ import annotations

import os
import shlex
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import PassfitError, ToolchainError
from ...support.children import start
from ...targets.desk import fill_in
from .image import LinkedImage

#: lines of a runner that failed
_LINES = 5
#: seconds for its last lines, once it was ended
_PARTING = 5


@dataclass(frozen=True)
class DeskImage(LinkedImage):
    """Run an image on a device on the desk by the command `runner`, with words to fill in.

    The clock counts cycles. Without a report, as from firmware of the user's own, neither these nor the stack are known.
    """

    def command(self, inputs: list[dict[str, np.ndarray]], repeats: int, seconds: float) -> list[str]:
        """Write the inputs to `folder`, remove earlier outputs, and return the command."""
        super().command(inputs, repeats, seconds)
        (self.folder / "outputs.bin").unlink(missing_ok=True)
        files = {
            "elf": self.image.elf,
            "library": self.library.archive,
            "header": self.library.header,
            "repo": Path.cwd(),
        }
        files |= {name: self.folder / f"{name}.bin" for name in ("inputs", "outputs", "report")}
        return fill_in(
            self.runner.words,
            {name: str(file.absolute()) for name, file in files.items()} | {"python": sys.executable},
        )

    def execute(self, command: list[str], where: str, seconds: float) -> str:
        """Run the command, with all that it starts; return what it prints. Raises ToolchainError with its last lines."""
        try:
            process = start(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise self._failure(f"{where} cannot be started: {error.strerror}", command, "") from error
        try:
            text, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            text = ""
            with suppress(subprocess.TimeoutExpired):
                text, _ = process.communicate(timeout=_PARTING)
            raise self._failure(f"{where} did not finish in {seconds:g} s", command, text) from None
        except BaseException:
            _end(process)
            raise
        if process.returncode:
            raise self._failure(f"{where} ended with exit code {process.returncode}", command, text)
        return text

    def report(self, text: str, where: str) -> dict[str, int]:
        """Read the image's report, if there is one: its stack in bytes, and the cycles of a run. Raises ToolchainError."""
        file = self.folder / "report.bin"
        if not file.exists():
            return {}
        try:
            stack, cycles = struct.unpack("<QQ", file.read_bytes())
        except struct.error:
            raise self.garbled(f"{where} wrote {file.stat().st_size} bytes of report instead of 16") from None
        return {"stack": stack, "cycles": cycles}

    def garbled(self, what: str) -> PassfitError:
        """Return the error of a result that is none."""
        return self._failure(what, self.runner.words, "")

    def _failure(self, what: str, command: list[str], text: str) -> ToolchainError:
        name, last = (
            self.image.board.name,
            " | ".join(line.strip() for line in text.splitlines() if line.strip()).split(" | ")[-_LINES:],
        )
        told = f": {' | '.join(last)}" if any(last) else ""
        return ToolchainError(
            f"{what}{told}.", f"Check the device and the runner of {name}, which was: {shlex.join(command)}"
        )


def _end(process: subprocess.Popen) -> None:
    """End a process and all of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
