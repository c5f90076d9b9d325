"""Exchange buffers with MiniMalloc as CSV: id, lower, upper, size, and offset once placed.

`lower` and `upper` are the half-open range of steps in which a buffer is alive. `size` is its bytes, rounded up to the
alignment of the plan. Buffers with gaps add a column of them: in 3-5@0:64 only the first 64 bytes hold data.
https://github.com/google/minimalloc
"""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from ...errors import ConfigError, PlanError
from ...program import Program
from ...support.text_files import read_text, write_text
from ..liveness import BufferParts, aligned, lifetimes
from ..validation.validate_plan import validate_plan
from .plan_file import SavedPlan

_HINT = "Write it with `passfit explain --minimalloc FILE`, and give it to a planner that adds `offset`."


def write_minimalloc(saved: SavedPlan, path: Path) -> None:
    """Write every buffer that is alive and not empty, with its present offset. Raises OutputError."""
    program, found = saved.program, io.StringIO()
    gaps = _gaps(program, saved.alignment)
    columns = ("id", "lower", "upper", "size", *(["gaps"] if gaps else []), "offset")
    writer = csv.DictWriter(found, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for index, life in enumerate(lifetimes(program)):
        size = aligned(program.buffers[index].nbytes, saved.alignment)
        if size and life.end > life.start:
            row = {"id": index, "lower": life.start, "upper": life.end, "size": size}
            writer.writerow({**row, "gaps": " ".join(gaps.get(index, ())), "offset": saved.plan.offsets[index]})
    write_text(path, found.getvalue())


def _gaps(program: Program, alignment: int) -> dict[int, list[str]]:
    """List, for each partly alive buffer, its gaps: the steps, and the bytes in use meanwhile."""
    parts, found = BufferParts(program, alignment), {}
    lives = parts.lives
    for buffer, life in enumerate(lifetimes(program)):
        own = parts.of_buffer(buffer)
        if len({lives[number] for number in own}) < 2:
            continue
        size = aligned(program.buffers[buffer].nbytes, alignment)
        ends = sorted({step for number in own for step in (lives[number].start, lives[number].end)} | {life.start})
        gaps = []
        for start, end in pairwise(step for step in ends if step >= life.start):
            alive = [number for number in own if lives[number].start <= start < lives[number].end]
            low = min((parts.lowers[number] for number in alive), default=0)
            high = max((parts.lowers[number] + parts.sizes[number] for number in alive), default=0)
            if (low, high) != (0, size):
                gaps.append(f"{start}-{end}" + (f"@{low}:{high}" if alive else ""))
        found[buffer] = gaps
    return found


def read_minimalloc(saved: SavedPlan, path: Path) -> SavedPlan:
    """Read a solution into `saved`: one block, without banks.

    Raises ConfigError for a malformed file, and for offsets that are not a plan of this program.
    """
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
    plan = replace(saved.plan, offsets=tuple(offsets), arena=arena, proved=arena == saved.plan.bound, banks=())
    try:
        validate_plan(saved.program, plan, saved.alignment)
    except PlanError as error:
        raise ConfigError(f"'{path}' is not a plan of this program: {error}", "Solve it again.") from error
    return replace(saved, plan=plan)
