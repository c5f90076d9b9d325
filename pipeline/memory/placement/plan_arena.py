"""Place the buffers of a program in one arena, as low as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...program import Program
from ..liveness import ALIGNMENT, BufferParts, aligned, lifetimes
from .greedy import Box, Part, place_greedily


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


def plan_arena(program: Program, alignment: int = ALIGNMENT) -> ArenaPlan:
    """Plan an arena for the program in its given order.

    Offsets and sizes are rounded up to `alignment` bytes. Takes the best of several greedy orders, which stop as soon as the
    bound is reached. Deterministic: no clock, no random numbers.
    """
    parts = BufferParts(program, alignment)
    offsets = [0] * len(program.buffers)
    placed = buffers_to_place(program)
    found, arena = place_buffers(program, placed, parts, alignment)
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
    program: Program, chosen: Sequence[int], parts: BufferParts, alignment: int
) -> tuple[tuple[int, ...], int]:
    """Place some buffers of a program in a block of their own, as `plan_arena` does; return offsets and height in bytes."""
    unit, boxes = boxes_of(program, chosen, parts, alignment)
    placement = place_greedily(boxes)
    return tuple(offset * unit for offset in placement.offsets), placement.height * unit


def boxes_of(program: Program, chosen: Sequence[int], parts: BufferParts, alignment: int) -> tuple[int, list[Box]]:
    """Return the boxes of some buffers, and their unit in bytes: a multiple of `alignment`."""
    lives = lifetimes(program)
    sizes = [aligned(program.buffers[index].nbytes, alignment) for index in chosen]
    unit = math.gcd(*sizes, *(parts.sizes[part] for index in chosen for part in parts.of_buffer(index))) or alignment
    return unit, [
        Box(lives[index].start, lives[index].end, size // unit, _parts(parts, index, unit))
        for index, size in zip(chosen, sizes, strict=True)
    ]


def _parts(parts: BufferParts, buffer: int, unit: int) -> tuple[Part, ...]:
    """Return the parts of a buffer that are ever alive."""
    return tuple(
        Part(life.start, life.end, parts.lowers[part] // unit, (parts.lowers[part] + parts.sizes[part]) // unit)
        for part in parts.of_buffer(buffer)
        if parts.sizes[part] and (life := parts.lives[part]).end > life.start
    )
