"""Count the instructions executed by a run under an emulator.

QEMU logs every executed block of instructions. For a library, those from the first call of the runner's function
`run_measured` to its second are counted, which leaves out start-up; for a kernel, those between two marks.
A million blocks take about two seconds, most of them QEMU's.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import ToolchainError
from ...support.children import start
from ..runner import Linked, LinkedImage

#: most executed blocks to count; each is a handful of instructions
MOST_BLOCKS = 4_000_000
#: name of the function in runner.c.j2 that calls the library
_RUN = "run_measured"
_LISTED = re.compile(rb"0x[0-9a-f]+:")
_NEWER = "Install another version of the emulator."
#: enough for so many blocks on a busy machine
_TIMEOUT_SECONDS = 600
_EXECUTED = re.compile(rb"Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/[^]]*\] ?(.*)")


def instructions(
    linked: Linked, inputs: dict[str, np.ndarray], most: int = MOST_BLOCKS, ended: threading.Event | None = None
) -> int | None:
    """Count the instructions of one run of an emulated library; None if it exceeds `most` blocks.

    Set `ended` to end the emulator early. Raises ToolchainError if the emulator cannot be started, or its log names no functions.
    """
    assert linked.runner.command, "counted under an emulator only"
    if isinstance(linked, LinkedImage):
        return linked.run([inputs])[0]["instructions"]
    command = linked.command([inputs], 1, -1)[len(linked.runner.command) :]
    with log_of(linked.runner.command, command, linked.folder, ended) as log:
        return count_between_calls(log, _RUN, most)


def count_between_calls(log: Iterable[bytes], function: str, most: int = MOST_BLOCKS) -> int | None:
    """Count the instructions from the first call of `function` to its second; None for more than `most` blocks.

    A call is an execution of the function's first block. Raises ToolchainError if there are fewer calls.
    """
    total, calls, entry, name = 0, 0, -1, function.encode()
    for number, block in enumerate(_blocks(log)):
        if number >= most:
            return None
        if block.function == name:
            entry = block.start if entry < 0 else entry
            calls += block.start == entry
            if calls == 2:
                return total
        if calls == 1:
            total += block.instructions
    raise ToolchainError(f"The emulator's log holds {calls} calls of '{function}', not 2.", _NEWER)


def count_between(log: Iterable[bytes], mark: str, limit: float, most: int = MOST_BLOCKS) -> int | None:
    """Count the instructions between two calls of the function `mark`.

    None if there are no two calls within `limit` instructions and `most` blocks.
    """
    total, first, marked = 0, None, mark.encode()
    for number, (count, function, _) in enumerate(_blocks(log)):
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
def log_of(
    emulator: Sequence[str], command: Sequence[str], folder: Path, ended: threading.Event | None = None
) -> Iterator[Iterable[bytes]]:
    """Run a command under an emulator and yield its execution log; kill the process on exit, or once `ended` is set.

    Raises ToolchainError if the emulator cannot be started, or hangs.
    """
    program, *options = emulator
    try:
        process = start(
            [program, *options, "-d", "nochain,exec,in_asm", *command],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise ToolchainError(f"{program} cannot be started: {error.strerror}.", "Check the emulator.") from error
    assert process.stderr is not None
    stuck, over = threading.Event(), ended or threading.Event()

    def watch() -> None:
        if not over.wait(_TIMEOUT_SECONDS):
            stuck.set()
        process.kill()

    watcher = threading.Thread(target=watch, daemon=True)
    with process:
        watcher.start()
        try:
            yield process.stderr
        finally:
            over.set()
            watcher.join()
    if stuck.is_set():
        raise ToolchainError(f"{program} did not finish in {_TIMEOUT_SECONDS} s.", "Check the emulator.")


class _Block(NamedTuple):
    """Executed block: its number of instructions, its function's name, if any, and its address."""

    instructions: int
    function: bytes
    start: int


def _blocks(log: Iterable[bytes]) -> Iterator[_Block]:
    """Yield each executed block. Raises ToolchainError for a log of another form."""
    lengths: dict[int, int] = {}
    known: dict[bytes, _Block] = {}  # by line: a block has the same one each time
    start = None
    for line in log:
        block = known.get(line)
        if block is not None:
            yield block
        elif line.startswith(b"Trace"):
            found = _EXECUTED.match(line)
            if found:
                address = int(found[1], 16)
                if address not in lengths:
                    raise ToolchainError("The emulator executed code that its log does not hold.", _NEWER)
                known[line] = _Block(lengths[address], found[2], address)
                yield known[line]
        elif _LISTED.match(line):
            if start is None:
                start = int(line.partition(b":")[0], 16)
                if start in lengths:  # translated again, maybe to another length
                    known.clear()
                lengths[start] = 0
            lengths[start] += 1
        else:
            start = None
