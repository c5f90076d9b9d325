"""Greedy placement of buffers whose parts are alive at different times: where one has a gap, another may lie.

    offset ▲        ┌────────┐
           │ ┌────┐ │ c, its │         the first part of c is not there before the second: x lies below it
           │ │ x  │ │ 1st    │
           │ └────┘ └────────┤
           │ ┌───────────────┤
           │ │ c, its 2nd    │
           └─┴───────────────┴──► steps

Called gaps by MiniMalloc (Moffitt, ASPLOS 2023), which searches exactly; here each is put at the lowest offset it may
have, in several orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .greedy import Box, Placement, neighbours, orders, promote


@dataclass(frozen=True)
class Block:
    """Alive in the half-open range `[start, end)` of steps, `[lower, upper)` of its buffer; in any one unit."""

    start: int
    end: int
    lower: int
    upper: int


#: the pieces of one buffer, which keep their places relative to each other
Shape = tuple[Block, ...]


def place_with_gaps(shapes: Sequence[Shape], best: Placement, bound: int, rounds: int) -> Placement:
    """A placement no higher than `best`, of the same buffers: of those that greedy orders lead to, each followed by
    `rounds` with the buffers at the top first, the lowest; `bound` is the height at which to stop."""
    if all(len({(each.start, each.end) for each in shape}) == 1 for shape in shapes):
        return best
    boxes = [_around(shape) for shape in shapes]
    near = neighbours(boxes)
    apart = [
        [(other, *limits) for other in near[one] for limits in _apart(shape, shapes[other])]
        for one, shape in enumerate(shapes)
    ]
    for order in orders(boxes, near):
        for _ in range(rounds):
            if best.height <= bound:
                return best
            found = _placed(boxes, apart, order)
            if found.height < best.height:
                best = found
            order = promote(order, boxes, found)
    return best


def _around(shape: Shape) -> Box:
    """The whole of it, from when it is first alive to when it is last."""
    return Box(min(each.start for each in shape), max(each.end for each in shape), max(each.upper for each in shape))


def _apart(shape: Shape, other: Shape) -> Iterator[tuple[int, int]]:
    """How far above the offset of `other`, exclusively from and to, that of `shape` must not be."""
    for one in shape:
        for two in other:
            if one.start < two.end and two.start < one.end:
                yield two.lower - one.upper, two.upper - one.lower


def _placed(boxes: Sequence[Box], apart: Sequence[Sequence[tuple[int, int, int]]], order: Sequence[int]) -> Placement:
    offsets = [-1] * len(boxes)
    for box in order:
        taken = sorted((offsets[n] + low, offsets[n] + high) for n, low, high in apart[box] if offsets[n] >= 0)
        lowest = 0
        for low, high in taken:
            if lowest <= low:
                break
            lowest = max(lowest, high)
        offsets[box] = lowest
    return Placement(tuple(offsets), max(low + box.size for low, box in zip(offsets, boxes, strict=True)))
