"""How many instructions a run executes, under an emulator.

qemu notes every block of instructions that it executes. Of a library, one run more in the same process is the difference
of two counts, so that what starts the process is left out; of a kernel, what lies between two marks counts. It takes
about a second for each million blocks.
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

#: executed blocks that are counted at most; each is a handful of instructions
MOST_BLOCKS = 8_000_000
_LISTED = re.compile(rb"0x[0-9a-f]+:")
_NEWER = "Install another version of the emulator."
#: for that many blocks, on a busy machine
_TIMEOUT_SECONDS = 600
_EXECUTED = re.compile(rb"Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/[^]]*\] ?(.*)")


def instructions(linked: Linked, inputs: dict[str, np.ndarray], most: int = MOST_BLOCKS) -> int | None:
    """Executed by one run of a library that is run by an emulator; None where two runs take more than `most` blocks.

    Raises ToolchainError where the emulator cannot be started.
    """
    twice = _of_process(linked, inputs, 2, most)
    if twice is None:
        return None
    once = _of_process(linked, inputs, 1, most)
    assert once is not None
    return twice - once


def executed(log: Iterable[bytes], most: int = MOST_BLOCKS) -> int | None:
    """The instructions that a log of `-d nochain,exec,in_asm` says were executed; None for more than `most` blocks."""
    total = 0
    for number, (count, _) in enumerate(_blocks(log)):
        if number >= most:
            return None
        total += count
    return total


def between(log: Iterable[bytes], mark: str, limit: float, most: int = MOST_BLOCKS) -> int | None:
    """The instructions executed after the function `mark` was called, until it is called again.

    None where that does not happen, or not within `limit` instructions and `most` blocks.
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
    """The log of what an emulator executes of a command; it is ended with the context.

    Raises ToolchainError where the emulator cannot be started, or hangs.
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
    """Of each block executed: how many instructions it is, and the function it is of, where that has a name.

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
    """Of a process that runs the library once, and then `repeats` times again."""
    assert linked.runner.command, "counted under an emulator only"
    command = linked.command([inputs], repeats, -1)[len(linked.runner.command) :]
    with log_of(linked.runner.command, command, linked.folder) as log:
        return executed(log, most)
