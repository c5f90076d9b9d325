"""Explain the planned bodies of loops: the values of each, their places in the workspace and their stages.

    Loop k03 loop, 40 iterations: 9.0 KiB of values, most alive in stage 5 softmax
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table

from ...memory import Parts, lifetimes
from ...memory.placement.kept_body import KeptBody
from ...program import Program
from ...support.sizes import format_bytes
from ..fit import Name, fitted, table
from ..kernel_names import kernel_label

#: values listed; the rest is summed up in one row
ROWS = 12


@dataclass(frozen=True)
class BodyValue:
    """Buffer of a body. `first` and `last` are stages; `offset` is in bytes of the workspace, None beside it."""

    name: str
    dtype: str
    nbytes: int
    offset: int | None
    first: int
    last: int


@dataclass(frozen=True)
class BodyExplained:
    """Planned body of the loop a step runs; sizes are bytes.

    `nbytes` are those of its arrays, `peak` the stage with most of `alive` bytes. `values` are in order of their first
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


def explain_bodies(program: Program, bodies: Sequence[KeptBody]) -> tuple[BodyExplained, ...]:
    """Explain the planned bodies of the loops of `program`, in order of the first step that runs each."""
    steps = [step.kernel for step in program.steps]
    inner = {array.name for body in bodies for array in body.arrays} & {each.name for body in bodies for each in body.program.buffers}
    found = [_explained(steps.index(body.kernel), body, any(array.name in inner for array in body.arrays)) for body in bodies]
    return tuple(sorted(found, key=lambda each: each.step))


def _explained(step: int, body: KeptBody, inside: bool) -> BodyExplained:
    program = body.program
    alive = Parts(program, body.alignment).alive_bytes()
    peak = max(range(len(alive)), key=lambda stage: (alive[stage], -stage))
    arrays = {array.dtype: array for array in body.arrays}
    values = []
    for number, (buffer, life) in enumerate(zip(program.buffers, lifetimes(program), strict=True)):
        if buffer.nbytes and life.end > life.start:
            array = arrays[program.dtypes[number]]
            offset = None if array.offset is None else array.offset + array.plan.offsets[number]
            values.append(BodyValue(buffer.name, array.dtype, buffer.nbytes, offset, life.start, life.end - 1))
    nbytes = sum(array.plan.arena for array in body.arrays)
    ordered = sorted(values, key=lambda value: (value.first, value.last))
    stage = program.steps[peak].kernel if program.steps else ""
    return BodyExplained(step, body.kernel, body.trips, inside, nbytes, peak, stage, alive[peak], tuple(ordered))


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
        offset = "–" if value.offset is None else str(value.offset)
        stages = f"{value.first}–{value.last}" if value.last > value.first else str(value.first)
        made.add_row(Name(value.name), Name(value.dtype), format_bytes(value.nbytes), offset, stages)
    if len(body.values) > len(shown):
        rest = [value.nbytes for value in body.values if value not in shown]
        made.add_row(f"{len(rest)} more", "", format_bytes(sum(rest)))
    return made
