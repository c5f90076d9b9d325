"""Read and fill in the runner of a device on the desk: a command that uploads an image, runs it, and fetches its outputs.

    boards:
      my-board: {base: stm32f446, runner: ["{python}", "{repo}/tools/run.py", "{elf}", "{inputs}", "{outputs}"]}

It runs in the folder of the image, without a shell. The image reads inputs.bin and writes outputs.bin and report.bin there
by itself through a debugger with semihosting; else the runner does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import TargetError, did_you_mean

#: words in braces that a runner may contain: files, the folder of params.yaml, this Python
PLACEHOLDERS = ("elf", "inputs", "outputs", "report", "library", "header", "repo", "python")
_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")


def read_runner(value: Any, where: str) -> tuple[str, ...]:
    """Read the key `runner` of a target: a list of words. Raises TargetError, whose message starts with `where`."""
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise TargetError(
            f"{where}: runner is {value!r}.",
            'Give a list of words, such as ["openocd", "-f", "board.cfg", "-c", "program {elf}"].',
        )
    for name in (name for word in value for name in _PLACEHOLDER.findall(word)):
        if name not in PLACEHOLDERS:
            raise TargetError(f"{where}: runner has the unknown word '{{{name}}}'.", did_you_mean(name, PLACEHOLDERS))
    return tuple(value)


def fill_in(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Fill in the words of a runner in braces; others stay."""
    return [_PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), word) for word in words]
