"""Explain the time of a run on a board: the instructions and cycles of each kernel, estimated from those of an emulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from ...memory.files.plan_file import CodePart
from ...support.sizes import format_milliseconds
from ...support.text_files import decode, read_text
from ..fit import Name, Nodes, fitted, table

#: rows listed; the others are summed up in one
ROWS = 12
_HINT = "Run the compilation that writes it again."
#: name of what kernels call: functions of the compiler and of C
_RUNTIME = "memory and arithmetic functions"


@dataclass(frozen=True)
class TimePart:
    """Kernel in one run: instructions, and cycles at least, likely and at most."""

    name: str
    nodes: tuple[str, ...]
    instructions: int
    cycles: tuple[int, int, int]


@dataclass(frozen=True)
class TimeExplained:
    """Kernels of a run on a board at `mhz`, the slowest first."""

    mhz: int
    parts: tuple[TimePart, ...]

    @property
    def cycles(self) -> int:
        """Return the likely cycles of all."""
        return sum(each.cycles[1] for each in self.parts)


def explain_time(file: Path, code: Sequence[CodePart]) -> TimeExplained | None:
    """Read the cycles.json `file`, and add up functions by kernel; `code` names these. None where there is no file.

    Raises ConfigError for a file of another form.
    """
    if not file.is_file():
        return None
    found = decode(dict, read_text(file, _HINT), str(file), _HINT)
    owners = sorted(code, key=lambda part: (-len(part.name), part.name))
    parts: dict[str, TimePart] = {}
    for row in found["functions"]:
        name = row["function"]
        owner = next((each for each in owners if f"{name}_".startswith(f"{each.name}_")), None)
        title = _RUNTIME if owner is None else owner.name
        known = parts.get(title, TimePart(title, owner.nodes if owner else (), 0, (0, 0, 0)))
        least, likely, most = (one + two for one, two in zip(known.cycles, row["cycles"], strict=True))
        parts[title] = TimePart(title, known.nodes, known.instructions + row["instructions"], (least, likely, most))
    return TimeExplained(found["mhz"], tuple(sorted(parts.values(), key=lambda part: (-part.cycles[1], part.name))))


def time_table(time: TimeExplained, wide: bool = False) -> RenderableType:
    """Show the kernels of a run; with `wide` all of them, with whole names."""
    total = max(1, time.cycles)
    title = f"Time by kernel: about {format_milliseconds(total / time.mhz / 1e3)} at {time.mhz} MHz, estimated"
    made = table(title, "<kernel", ">share", ">time", ">cycles", ">instructions", "<ONNX nodes")
    shown = time.parts if wide else time.parts[:ROWS]
    for part in shown:
        made.add_row(
            Name(part.name), f"{part.cycles[1] / total:.0%}", format_milliseconds(part.cycles[1] / time.mhz / 1e3),
            f"{part.cycles[1]:,}", f"{part.instructions:,}", Nodes(part.nodes, wide),
        )  # fmt: skip
    rest = time.parts[len(shown) :]
    if rest:
        cycles = sum(part.cycles[1] for part in rest)
        made.add_row(
            f"{len(rest)} more", f"{cycles / total:.0%}", format_milliseconds(cycles / time.mhz / 1e3), f"{cycles:,}",
            f"{sum(part.instructions for part in rest):,}",
        )  # fmt: skip
    return fitted(
        made, "cycles: of the instructions an emulator counted, by class, as the core's manual gives them", wide=wide
    )
