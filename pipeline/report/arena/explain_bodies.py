"""Explain the planned bodies of loops: the values of each, their places in the workspace and their stages.

Loop k03 loop, 40 iterations: 9.0 KiB of values, most alive in stage 5 softmax
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from ...memory import BufferParts, lifetimes
from ...memory.liveness import aligned
from ...program import Loop, Program
from ...support.sizes import format_bytes
from ..fit import Name, fitted, table
from ..kernel_names import kernel_label

#: values listed; the rest is summed up in one row
ROWS = 12


@dataclass(frozen=True)
class BodyValue:
    """Buffer of a body. `first` and `last` are stages; `offset` is in bytes of the loop's workspaces."""

    name: str
    dtype: str
    nbytes: int
    offset: int
    first: int
    last: int


@dataclass(frozen=True)
class BodyExplained:
    """Planned body of the loop a step runs; sizes are bytes.

    `nbytes` are those of its workspaces, `peak` the stage with most of `alive` bytes. `values` are in order of their first
    stage; `inside` tells a loop in the body of another.
    """

    step: int
    kernel: str
    trips: int
    inside: bool
    nbytes: int
    peak: int
    stage: str
    alive: int
    values: tuple[BodyValue, ...]


def explain_bodies(program: Program) -> tuple[BodyExplained, ...]:
    """Explain the bodies of the loops of `program`, in order, outer loops first."""
    return tuple(_all_explained(program, None, None))


def _all_explained(program: Program, places: Sequence[int] | None, step: int | None) -> Iterator[BodyExplained]:
    """Yield the bodies of a program's loops. In a body of `step`, its buffers lie at `places` in the workspaces."""
    for number, each in enumerate(program.steps):
        if isinstance(each, Loop):
            own = number if step is None else step
            starts = _starts(program, places, each)
            inside = [
                offset + (starts[each.workspace_of(buffer)] if starts else 0)
                for buffer, offset in enumerate(each.offsets)
            ]
            yield _explained(
                own, each, inside, sum(aligned(program.tensors[tensor].nbytes) for tensor in starts), step is not None
            )
            yield from _all_explained(each.body, inside, own)


def _starts(program: Program, places: Sequence[int] | None, loop: Loop) -> dict[int, int]:
    """Return the place of each workspace of a loop; those of the outermost one lie one after the other."""
    own = loop.writes[len(loop.results) :]
    if places is None:
        return dict(zip(own, accumulate((aligned(program.tensors[tensor].nbytes) for tensor in own), initial=0)))
    tensors = [(tensor, program.tensors[tensor]) for tensor in own]
    return {tensor: places[what.buffer] + what.offset for tensor, what in tensors if what.buffer is not None}


def _explained(step: int, loop: Loop, places: Sequence[int], nbytes: int, inside: bool) -> BodyExplained:
    program = loop.inner
    alive = BufferParts(program).live_bytes()
    peak = max(range(len(alive)), key=lambda stage: (alive[stage], -stage))
    values = [
        BodyValue(buffer.name, program.dtypes[number], buffer.nbytes, places[number], life.start, life.end - 1)
        for number, (buffer, life) in enumerate(zip(program.buffers, lifetimes(program), strict=True))
        if buffer.nbytes and life.end > life.start
    ]
    ordered = sorted(values, key=lambda value: (value.first, value.last))
    stage = program.steps[peak].kernel if program.steps else ""
    return BodyExplained(step, loop.kernel, loop.trips, inside, nbytes, peak, stage, alive[peak], tuple(ordered))


def bodies_table(bodies: Sequence[BodyExplained], wide: bool = False) -> RenderableType:
    """Show the values of each body; with `wide` all of them, with whole names."""
    return fitted(*(part for body in bodies for part in (_said(body), _values_table(body, wide))), wide=wide)


def _said(body: BodyExplained) -> str:
    loop = f"Loop {'inside ' if body.inside else ''}{kernel_label(body.step, body.kernel)}"
    most = f"{format_bytes(body.alive)} alive in stage {body.peak} {body.stage}"
    return f"{loop}, {body.trips} iterations: {format_bytes(body.nbytes)} of values, {most}"


def _values_table(body: BodyExplained, wide: bool) -> Table:
    made = table("", "<value", "<dtype", ">size", ">offset", ">stages")
    made.box, made.pad_edge = SIMPLE_HEAD, False
    shown = body.values if wide else tuple(sorted(body.values, key=lambda value: -value.nbytes)[:ROWS])
    for value in (each for each in body.values if each in shown):
        stages = f"{value.first}–{value.last}" if value.last > value.first else str(value.first)
        made.add_row(Name(value.name), Name(value.dtype), format_bytes(value.nbytes), str(value.offset), stages)
    if len(body.values) > len(shown):
        rest = [value.nbytes for value in body.values if value not in shown]
        made.add_row(f"{len(rest)} more", "", format_bytes(sum(rest)))
    return made
