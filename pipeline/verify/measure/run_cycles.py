"""Define cycles.json: the functions of a run on a board, the slowest first, with instructions, and cycles at least, likely and at most."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...support.text_files import decode, read_text

#: the file, next to a library
CYCLES = "cycles.json"


@dataclass(frozen=True)
class FunctionCycles:
    """Function of a library in one run: its name, without the library's, its instructions and cycles."""

    function: str
    instructions: int
    cycles: tuple[int, int, int]


@dataclass(frozen=True)
class RunCycles:
    """Content of cycles.json: the clock of the board, and the functions of one run."""

    mhz: int
    functions: tuple[FunctionCycles, ...]


def read_cycles(folder: Path) -> RunCycles | None:
    """Read the cycles.json of a result folder; None without one. Raises ConfigError for a malformed file."""
    place, hint = folder / CYCLES, "Run the compilation that writes it again."
    return decode(RunCycles, read_text(place, hint), str(place), hint) if place.is_file() else None
