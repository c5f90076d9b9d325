"""Count the instructions executed by a run under an emulator.

QEMU logs every executed block of instructions. For a library, the counts of two processes, one with an additional run,
are subtracted, so that start-up is left out; for a kernel, the instructions between two marks are counted. A million
blocks take about a second.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..errors import ToolchainError
from .runner import Linked

#: most executed blocks to count; each is a handful of instructions
MOST_BLOCKS = 8_000_000
_LISTED = re.compile(rb"0x[0-9a-f]+:")
_NEWER = "Install another version of the emulator."
#: enough for so many blocks on a busy machine
_TIMEOUT_SECONDS = 600
_EXECUTED = re.compile(rb"Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/[^]]*\] ?(.*)")


def instructions(linked: Linked, inputs: dict[str, np.ndarray], most: int = MOST_BLOCKS) -> int | None:
    """Count the instructions of one run of an emulated library; None if two exceed `most` blocks.

    Raises ToolchainError if the emulator cannot be started.
    """
    twice = _of_process(linked, inputs, 2, most)
    if twice is None:
        return None
    once = _of_process(linked, inputs, 1, most)
    assert once is not None
    return twice - once


def executed(log: Iterable[bytes], most: int = MOST_BLOCKS) -> int | None:
    """Count the instructions in a log of `-d nochain,exec,in_asm`; None for more than `most` blocks."""
    total = 0
    for number, (count, _) in enumerate(_blocks(log)):
        if number >= most:
            return None
        total += count
    return total


def between(log: Iterable[bytes], mark: str, limit: float, most: int = MOST_BLOCKS) -> int | None:
    """Count the instructions between two calls of the function `mark`.

    None if there are no two calls within `limit` instructions and `most` blocks.
    """
    total, first, marked = 0, None, mark.encode()
    for number, (count, function) in enumerate(_blocks(log)):
        if function == marked:
            if first is not None:
                return total
            first = number
        elif first is not None:
            total += count
            if total > limit or number - first > most:
                return None
    return None


@contextmanager
def log_of(emulator: Sequence[str], command: Sequence[str], folder: Path) -> Iterator[Iterable[bytes]]:
    """Run a command under an emulator and yield its execution log; kill the process on exit.

    Raises ToolchainError if the emulator cannot be started, or hangs.
    """
    program, *options = emulator
    try:
        process = subprocess.Popen(
            [program, *options, "-d", "nochain,exec,in_asm", *command],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise ToolchainError(f"{program} cannot be started: {error.strerror}.", "Check the emulator.") from error
    assert process.stderr is not None
    stuck = threading.Event()

    def give_up() -> None:
        stuck.set()
        process.kill()

    timer = threading.Timer(_TIMEOUT_SECONDS, give_up)
    with process:
        timer.start()
        try:
            yield process.stderr
        finally:
            timer.cancel()
            process.kill()
    if stuck.is_set():
        raise ToolchainError(f"{program} did not finish in {_TIMEOUT_SECONDS} s.", "Check the emulator.")


def _blocks(log: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each executed block: its number of instructions, and its function's name, if any.

    Raises ToolchainError for a log of another form.
    """
    lengths: dict[int, int] = {}
    start = None
    for line in log:
        if line.startswith(b"Trace"):
            found = _EXECUTED.match(line)
            if found:
                length = lengths.get(int(found[1], 16))
                if length is None:
                    raise ToolchainError("The emulator executed code that its log does not hold.", _NEWER)
                yield length, found[2]
        elif _LISTED.match(line):
            if start is None:
                start = int(line.partition(b":")[0], 16)
                lengths[start] = 0
            lengths[start] += 1
        else:
            start = None


def _of_process(linked: Linked, inputs: dict[str, np.ndarray], repeats: int, most: int) -> int | None:
    """Count the instructions of a process with 1 + `repeats` runs of the library; None beyond `most` blocks."""
    assert linked.runner.command, "counted under an emulator only"
    command = linked.command([inputs], repeats, -1)[len(linked.runner.command) :]
    with log_of(linked.runner.command, command, linked.folder) as log:
        return executed(log, most)
