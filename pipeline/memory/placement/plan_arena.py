"""Place the buffers of a program in one arena, as low as possible."""

from __future__ import annotations

import math
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
    placed, unit, boxes = boxes_of(program, parts, alignment)
    found, offsets = place_greedily(boxes), [0] * len(program.buffers)
    for index, offset in zip(placed, found.offsets, strict=True):
        offsets[index] = offset * unit
    arena, least = found.height * unit, max(parts.live_bytes())
    return ArenaPlan(tuple(offsets), arena, least, max(parts.working_sets(), default=0), arena == least)


def boxes_of(program: Program, parts: BufferParts, alignment: int) -> tuple[list[int], int, list[Box]]:
    """Return the buffers that need a place, their unit in bytes, a multiple of `alignment`, and their boxes.

    Others are empty or never alive.
    """
    lives = lifetimes(program)
    placed = [n for n, life in enumerate(lives) if program.buffers[n].nbytes and life.end > life.start]
    sizes = [aligned(program.buffers[index].nbytes, alignment) for index in placed]
    unit = math.gcd(*sizes, *(parts.sizes[part] for index in placed for part in parts.of_buffer(index))) or alignment
    boxes = [
        Box(lives[index].start, lives[index].end, size // unit, _parts(parts, index, unit))
        for index, size in zip(placed, sizes, strict=True)
    ]
    return placed, unit, boxes


def _parts(parts: BufferParts, buffer: int, unit: int) -> tuple[Part, ...]:
    """Return the parts of a buffer that are ever alive."""
    return tuple(
        Part(life.start, life.end, parts.lowers[part] // unit, (parts.lowers[part] + parts.sizes[part]) // unit)
        for part in parts.of_buffer(buffer)
        if parts.sizes[part] and (life := parts.lives[part]).end > life.start
    )
