"""How many instructions a run executes, under an emulator.

qemu notes every block of instructions that it executes; one run more in the same process is the difference of two
counts, so that what starts the process is left out. It takes about a second for each million blocks.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

import numpy as np

from ..errors import ToolchainError
from .runner import Linked

#: executed blocks that are counted at most; each is a handful of instructions
MOST_BLOCKS = 8_000_000
_EXECUTED = re.compile(rb"Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/")


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
    lengths: dict[int, int] = {}
    total, blocks, start = 0, 0, None
    for line in log:
        if line.startswith(b"Trace"):
            found = _EXECUTED.match(line)
            if found:
                total += lengths[int(found[1], 16)]
                blocks += 1
                if blocks > most:
                    return None
        elif line.startswith(b"0x"):
            if start is None:
                start = int(line.partition(b":")[0], 16)
                lengths[start] = 0
            lengths[start] += 1
        else:
            start = None
    return total


def _of_process(linked: Linked, inputs: dict[str, np.ndarray], repeats: int, most: int) -> int | None:
    """Of a process that runs the library once, and then `repeats` times again."""
    assert linked.runner.command, "counted under an emulator only"
    emulator, *options = linked.runner.command
    command = linked.command([inputs], repeats, -1)[len(linked.runner.command) :]
    try:
        process = subprocess.Popen(
            [emulator, *options, "-d", "nochain,exec,in_asm", *command],
            cwd=linked.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise ToolchainError(f"{emulator} cannot be started: {error.strerror}.", "Check the emulator.") from error
    assert process.stderr is not None
    with process:
        try:
            return executed(process.stderr, most)
        finally:
            process.kill()
