"""Place the buffers of a program in one arena, as low as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...program import Program
from ..liveness import ALIGNMENT, BufferParts, Lifetime, aligned, lifetimes
from .gaps import BufferPart, Shape, place_with_gaps
from .greedy import Box, Placement, conflicts, loads, neighbours, place_greedily
from .skyline import skyline_placement

#: rounds of each order with the boxes at the last top first, where buffers have gaps or memories walls
PROMOTIONS = 24
#: boxes the search may look at; a quarter to half a second, if it is needed at all
WORK = 200_000


@dataclass(frozen=True)
class Bank:
    """Part of an arena, of `size` bytes, in the memory of a device named `region`."""

    region: str
    size: int


@dataclass(frozen=True)
class ArenaPlan:
    """Offset of each buffer in the arena, in bytes, by index; 0 for an empty or never alive buffer.

    No plan of this order goes below `bound`; no order goes below `floor`. `proved` says that the arena equals the
    bound, so that no better plan of this order exists. `banks` are blocks in memories of their own, whose offsets follow each
    other; no buffer crosses from one into the next. Without any, the arena is one block in the first memory.
    """

    offsets: tuple[int, ...]
    arena: int
    bound: int
    floor: int
    proved: bool
    banks: tuple[Bank, ...] = ()


def plan_arena(program: Program, alignment: int = ALIGNMENT, work: int = WORK) -> ArenaPlan:
    """Plan an arena for the program in its given order.

    Offsets and sizes are rounded up to `alignment` bytes. Takes the best of several greedy orders, then of a search limited
    to `work`. These take each buffer as alive while any part of it is.
    If the result is above the bound, gaps are used, greedily. Stops as soon as the bound is reached. Deterministic: no
    clock, no random numbers.
    """
    parts = BufferParts(program, alignment)
    offsets = [0] * len(program.buffers)
    placed = buffers_to_place(program)
    found, arena = place_buffers(program, placed, parts, alignment, work)
    for index, offset in zip(placed, found, strict=True):
        offsets[index] = offset
    least = max(parts.live_bytes())
    return ArenaPlan(tuple(offsets), arena, least, max(parts.working_sets(), default=0), arena == least)


def buffers_to_place(program: Program) -> list[int]:
    """List the buffers that need a place: neither empty nor never alive."""
    return [
        number
        for number, (buffer, life) in enumerate(zip(program.buffers, lifetimes(program), strict=True))
        if buffer.nbytes and life.end > life.start
    ]


def place_buffers(
    program: Program, chosen: Sequence[int], parts: BufferParts, alignment: int, work: int = WORK
) -> tuple[tuple[int, ...], int]:
    """Place some buffers of a program in a block of their own, as `plan_arena` does; return offsets and height in bytes."""
    unit, boxes = boxes_of(program, chosen, parts, alignment)
    shapes = [_shape(parts, index, unit) for index in chosen]
    placement = lowest(boxes, work)
    least = _most_alive(shapes)
    if placement.height > least:
        placement = place_with_gaps(shapes, placement, least, PROMOTIONS)
    return tuple(offset * unit for offset in placement.offsets), placement.height * unit


def boxes_of(program: Program, chosen: Sequence[int], parts: BufferParts, alignment: int) -> tuple[int, list[Box]]:
    """Return the boxes of some buffers, and their unit in bytes: a multiple of `alignment`."""
    lives = lifetimes(program)
    sizes = [aligned(program.buffers[index].nbytes, alignment) for index in chosen]
    unit = math.gcd(*sizes, *(parts.sizes[part] for index in chosen for part in parts.of_buffer(index))) or alignment
    return unit, _compress([lives[index] for index in chosen], [size // unit for size in sizes])


def lowest(boxes: Sequence[Box], work: int = WORK) -> Placement:
    """Find the lowest placement: greedy orders, then `work` of the skyline search."""
    if not boxes:
        return Placement((), 0)
    least = max(loads(boxes))
    near = neighbours(boxes)
    best = place_greedily(boxes, near, conflicts(boxes, near), 1, least)
    return best if best.height == least else skyline_placement(boxes, best, least, work)


def _most_alive(shapes: Sequence[Shape]) -> int:
    """Return the most units alive at one step."""
    blocks = [block for shape in shapes for block in shape]
    return max(loads([Box(block.start, block.end, block.upper - block.lower) for block in blocks]), default=0)


def _shape(parts: BufferParts, buffer: int, unit: int) -> Shape:
    """Return the parts of a buffer that are ever alive, as blocks."""
    return tuple(
        BufferPart(life.start, life.end, parts.lowers[part] // unit, (parts.lowers[part] + parts.sizes[part]) // unit)
        for part in parts.of_buffer(buffer)
        if parts.sizes[part] and (life := parts.lives[part]).end > life.start
    )


def _compress(lives: Sequence[Lifetime], sizes: Sequence[int]) -> list[Box]:
    """Return boxes over the moments at which some buffer is born.

    Lifetimes that meet do so at one of these.
    """
    births = sorted({life.start for life in lives})
    rank = {step: number for number, step in enumerate(births)}
    count, number = {}, 0
    for step in range(max((life.end for life in lives), default=0) + 1):
        count[step] = number
        number += step in rank
    return [Box(rank[life.start], count[life.end], size) for life, size in zip(lives, sizes, strict=True)]
