"""Buffers as MiniMalloc reads and writes them: a CSV of id, lower, upper, size, and offset once they are placed.

`lower` and `upper` are the half-open range of steps in which a buffer is alive, `size` its bytes rounded up to the
alignment of the plan. https://github.com/google/minimalloc
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

from ..errors import ConfigError, PlanError
from ..graph.files import read_text, write_text
from .liveness import aligned, lifetimes
from .planfile import SavedPlan
from .validator import validate_plan

_COLUMNS = ("id", "lower", "upper", "size", "offset")
_HINT = "Write it with `passfit explain --minimalloc FILE`, and give it to a planner that adds `offset`."


def write_minimalloc(saved: SavedPlan, path: Path) -> None:
    """Every buffer that is ever alive and not empty, by its number, with the offset it has now. Raises OutputError."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for index, life in enumerate(lifetimes(saved.program)):
        size = aligned(saved.program.buffers[index].nbytes, saved.alignment)
        if size and life.end > life.start:
            writer.writerow((index, life.start, life.end, size, saved.plan.offsets[index]))
    write_text(path, rows.getvalue())


def read_minimalloc(saved: SavedPlan, path: Path) -> SavedPlan:
    """`saved` with the offsets of a solution. Raises ConfigError where it is malformed, or no plan for this program."""
    offsets = list(saved.plan.offsets)
    try:
        for row in csv.DictReader(io.StringIO(read_text(path, _HINT))):
            index = int(row["id"])
            if not 0 <= index < len(offsets):
                raise ConfigError(f"'{path}': there is no buffer {index}.", _HINT)
            offsets[index] = int(row["offset"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"'{path}' is not a solution of MiniMalloc: {error!r}.", _HINT) from None
    arena = max(
        (
            offset + aligned(buffer.nbytes, saved.alignment)
            for buffer, offset in zip(saved.program.buffers, offsets, strict=True)
            if buffer.nbytes
        ),
        default=0,
    )
    plan = replace(saved.plan, offsets=tuple(offsets), arena=arena, proved=arena == saved.plan.bound)
    try:
        validate_plan(saved.program, plan, saved.alignment)
    except PlanError as error:
        raise ConfigError(f"'{path}' is no plan of this program: {error}", "Solve it again.") from error
    return replace(saved, plan=plan)
