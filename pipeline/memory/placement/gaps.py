"""Place buffers with gaps greedily: a buffer may be stored in the gap of another.

    offset ▲        ┌────────┐
           │ ┌────┐ │ c, its │         the first part of c is not there before the second: x lies below it
           │ │ x  │ │ 1st    │
           │ └────┘ └────────┤
           │ ┌───────────────┤
           │ │ c, its 2nd    │
           └─┴───────────────┴──► steps

A gap is a time in which only some parts of a buffer are alive. The word is MiniMalloc's (Moffitt, ASPLOS 2023), which
searches exactly. Here each buffer is put at its lowest possible offset, in several orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..liveness import Lifetime
from .greedy import Box, Placement, neighbours, place_greedily


@dataclass(frozen=True)
class BufferPart(Lifetime):
    """Part of a buffer: `[lower, upper)` of it alive in steps `[start, end)`; in any one unit."""

    lower: int
    upper: int


#: the blocks of one buffer, at fixed offsets to each other
Shape = tuple[BufferPart, ...]


def place_with_gaps(shapes: Sequence[Shape], best: Placement, bound: int, rounds: int) -> Placement:
    """Place the buffers of `shapes` greedily, no higher than `best`; stop at height `bound`.

    Tries several greedy orders, each followed by `rounds` with the buffers at the top first, and keeps the lowest.
    """
    if all(len({(each.start, each.end) for each in shape}) == 1 for shape in shapes):
        return best
    boxes = [_around(shape) for shape in shapes]
    near = neighbours(boxes)
    apart = [
        [(other, *limits) for other in near[one] for limits in _apart(shape, shapes[other])]
        for one, shape in enumerate(shapes)
    ]
    return min(best, place_greedily(boxes, near, apart, rounds, bound), key=lambda each: each.height)


def _around(shape: Shape) -> Box:
    """Return the box around a shape, from its first step alive to its last."""
    return Box(min(each.start for each in shape), max(each.end for each in shape), max(each.upper for each in shape))


def _apart(shape: Shape, other: Shape) -> Iterator[tuple[int, int]]:
    """Yield the open intervals of forbidden offset differences, `shape` minus `other`."""
    for one in shape:
        for two in other:
            if one.overlaps(two):
                yield two.lower - one.upper, two.upper - one.lower
