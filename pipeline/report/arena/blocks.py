"""Lay out an arena over time as rectangles: steps to the right, offsets upwards, one for each buffer or part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...memory import ALIGNMENT, ArenaPlan, BufferParts, lifetimes
from ...memory.liveness import aligned
from ...program import Program
from .explain import Role, peak_step, role_of
from .explain_bodies import BodyExplained


@dataclass(frozen=True)
class Block:
    """Rectangle of `nbytes` at `offset`, alive in the half-open range of steps [start, end).

    It takes the arena up to `top`, with its alignment. `made_by` is the step that writes the buffer first, None where
    the caller does.
    """

    number: int
    name: str
    dtype: str
    nbytes: int
    offset: int
    top: int
    start: int
    end: int
    role: Role
    at_peak: bool
    made_by: int | None = None


def blocks_of(program: Program, plan: ArenaPlan, alignment: int = ALIGNMENT) -> list[Block]:
    """Return the rectangles of a plan; parts of a buffer that lie and live side by side are one."""
    peak, parts, makers = (
        peak_step(program, plan, lifetimes(program), alignment),
        BufferParts(program, alignment),
        _makers(program),
    )
    blocks: list[Block] = []
    for number, low, size, life in zip(parts.buffers, parts.lowers, parts.sizes, parts.lives, strict=True):
        buffer, offset = program.buffers[number], plan.offsets[number] + low
        nbytes = min(size, buffer.nbytes - low)
        if nbytes <= 0 or life.end <= life.start:
            continue
        last = blocks[-1] if blocks else None
        if last and (last.number, last.offset + last.nbytes, last.start, last.end) == (
            number,
            offset,
            life.start,
            life.end,
        ):
            nbytes += last.nbytes
            blocks[-1] = replace(last, nbytes=nbytes, top=last.offset + aligned(nbytes, alignment))
            continue
        blocks.append(
            Block(
                number,
                buffer.name,
                program.dtypes[number],
                nbytes,
                offset,
                offset + aligned(nbytes, alignment),
                life.start,
                life.end,
                role_of(program, number),
                life.start <= peak < life.end,
                makers.get(number),
            )
        )
    return blocks


def body_blocks(body: BodyExplained) -> list[Block]:
    """Return the rectangles of the values in the body of a loop: stages to the right, places in its workspaces upwards."""
    return [
        Block(
            number,
            value.name,
            value.dtype,
            value.nbytes,
            value.offset,
            value.offset + aligned(value.nbytes),
            value.first,
            value.last + 1,
            "result",
            value.first <= body.peak <= value.last,
        )
        for number, value in enumerate(body.values)
    ]


def highest(blocks: Sequence[Block]) -> int:
    """Return the bytes that the rectangles take."""
    return max((block.top for block in blocks), default=0)


def _makers(program: Program) -> dict[int, int]:
    """Map each buffer to the step that writes it first; inputs have none."""
    return {buffer: step for buffer, step in _written(program) if buffer not in program.input_buffers()}


def _written(program: Program) -> Iterator[tuple[int, int]]:
    """Yield buffers and the steps that write them, the first step last."""
    for step in reversed(range(len(program.steps))):
        yield from ((buffer, step) for buffer in program.buffers_of(program.steps[step].writes))
