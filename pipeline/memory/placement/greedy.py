"""Place buffers greedily: take them in some order, each into the lowest free gap.

No single order wins on every network, so the planner takes the best of several. A box is a buffer in time and memory. It
may have gaps, times in which only some parts of it are alive: others may be stored there. The word is MiniMalloc's (Moffitt,
ASPLOS 2023), which searches exactly.

    offset ▲   ┌───────┐                    ┌────────┐
           │   │ box 1 │ ┌───────┐   ┌────┐ │ c, its │         the first part of c is not there before
           │ ┌─┴───────┴─┤ box 2 │   │ x  │ │ 1st    │         the second: x lies below it
           │ │   box 0   │       │   │    │ └────────┤
           │ │           │       │   └────┘          │
           │ │           │       │   ┌───────────────┤
           │ │           │       │   │ c, its 2nd    │
           └─┴───────────┴───────┴───┴───────────────┴──► steps
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..liveness import Lifetime, sum_alive

#: rounds of each order, and most boxes placed in them
ROUNDS, PLACED = 24, 2400


@dataclass(frozen=True)
class Part(Lifetime):
    """Units `[lower, upper)` of a buffer, alive in steps `[start, end)`."""

    lower: int
    upper: int


@dataclass(frozen=True)
class Box(Lifetime):
    """Buffer to place: alive in steps `[start, end)`, of `size` in any one unit, all > 0; in `parts` if it has gaps."""

    size: int
    parts: tuple[Part, ...] = ()

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def solid(self) -> tuple[Part, ...]:
        """Return its parts, each without gaps."""
        return self.parts or (Part(self.start, self.end, 0, self.size),)


#: another box, and the open interval of offset differences that are forbidden
Conflict = tuple[int, int, int]


@dataclass(frozen=True)
class Placement:
    """Offset of each box, in the boxes' unit, and the top of the highest one."""

    offsets: tuple[int, ...]
    height: int


def neighbours(boxes: Sequence[Box]) -> list[list[int]]:
    """List, for each box, the boxes alive at a common step: they must not share memory."""
    found: list[list[int]] = [[] for _ in boxes]
    alive: list[int] = []
    for box in sorted(range(len(boxes)), key=lambda b: boxes[b].start):
        alive = [other for other in alive if boxes[other].end > boxes[box].start]
        for other in alive:
            found[box].append(other)
            found[other].append(box)
        alive.append(box)
    return found


def conflicts(boxes: Sequence[Box], near: Sequence[Sequence[int]]) -> list[list[Conflict]]:
    """List, for each box, its neighbours with the offset differences at which they share a byte."""
    solid = [box.solid for box in boxes]
    return [
        [
            (other, two.lower - one.upper, two.upper - one.lower)
            for other in others
            for one in parts
            for two in solid[other]
            if one.overlaps(two)
        ]
        for parts, others in zip(solid, near, strict=True)
    ]


def loads(boxes: Sequence[Box]) -> list[int]:
    """Sum the sizes alive at each step."""
    parts = [part for box in boxes for part in box.solid]
    return sum_alive([part.upper - part.lower for part in parts], parts, max((part.end for part in parts), default=0))


def lowest_free(taken: Iterable[tuple[int, int]]) -> int:
    """Return the lowest offset, from 0 on, that lies in none of the open intervals `taken`."""
    lowest = 0
    for low, high in sorted(taken):
        if lowest <= low:
            break
        lowest = max(lowest, high)
    return lowest


def orders(boxes: Sequence[Box], near: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the greedy orders of the boxes, the most often successful first.

    By size: TensorFlow Lite Micro's GreedyMemoryPlanner, ExecuTorch's greedy algorithm, and "greedy by size" of
    Pisarchyk & Lee, Efficient Memory Management for Deep Neural Net Inference (MLSys workshop 2020). By crowding, then
    lifetime or size, and by size × lifetime: MiniMalloc (Moffitt, ASPLOS 2023). By lifetime: XLA's
    GlobalDecreasingSizeBestFitHeap, temporal order. By the fullest step a box belongs to: "greedy by breadth" of
    Pisarchyk & Lee. By number of conflicts: TVM's USMP greedy_by_conflicts. By start and by end: a stack, forwards
    and backwards.
    """
    total = loads(boxes)
    crowd = [max(total[box.start : box.end]) for box in boxes]  # the largest load of a step at which each is alive
    crest = {step: rank for rank, step in enumerate(sorted(range(len(total)), key=lambda s: (-total[s], s)))}
    breadth = [min(crest[s] for s in range(box.start, box.end)) for box in boxes]

    def sort(key) -> list[int]:
        return sorted(range(len(boxes)), key=lambda b: (*key(b, boxes[b]), boxes[b].start, b))

    yield sort(lambda b, box: (-box.size, -box.length))
    yield sort(lambda b, box: (-crowd[b], -box.length, -box.size))
    yield sort(lambda b, box: (-crowd[b], -box.size))
    yield sort(lambda b, box: (-box.size * box.length,))
    yield sort(lambda b, box: (-box.length, -box.size))
    yield sort(lambda b, box: (breadth[b], -box.size))
    yield sort(lambda b, box: (-len(near[b]), -box.size))
    yield sort(lambda b, box: (box.start, -box.size))
    yield sort(lambda b, box: (-box.end, -box.size))


def promote(order: Sequence[int], boxes: Sequence[Box], placement: Placement) -> list[int]:
    """Move the boxes at the top of `placement` to the front.

    "Squeaky wheel" optimisation, Joslin & Clements 1999.
    """
    tops = [placement.offsets[b] + boxes[b].size for b in order]
    blamed = [b for b, top in zip(order, tops, strict=True) if top == placement.height]
    return blamed + [b for b, top in zip(order, tops, strict=True) if top < placement.height]


def place_greedily(boxes: Sequence[Box]) -> Placement:
    """Return the lowest placement in all `orders`, see `promoted`; the first that takes no more than is alive at once."""
    near, enough = neighbours(boxes), max(loads(boxes), default=0)
    place = partial(place_lowest, boxes, conflicts(boxes, near))
    best: Placement | None = None
    for found in promoted(orders(boxes, near), boxes, place, enough):
        best = found if best is None or found.height < best.height else best
        if best.height == enough:
            break
    assert best is not None
    return best


def place_lowest(
    boxes: Sequence[Box], apart: Sequence[Sequence[Conflict]], order: Sequence[int], walls: Sequence[int] = ()
) -> Placement:
    """Place the boxes in `order`, each at its lowest possible offset, across none of the `walls`.

    `apart` are the conflicts of each box.
    """
    offsets = [-1] * len(boxes)
    for box in order:
        walled = [(wall - boxes[box].size, wall) for wall in walls]
        taken = [(offsets[n] + low, offsets[n] + high) for n, low, high in apart[box] if offsets[n] >= 0]
        offsets[box] = lowest_free([*walled, *taken])
    return Placement(tuple(offsets), max((low + box.size for low, box in zip(offsets, boxes, strict=True)), default=0))


def promoted(
    orders: Iterable[Sequence[int]],
    boxes: Sequence[Box],
    place: Callable[[Sequence[int]], Placement],
    enough: int,
) -> Iterator[Placement]:
    """Yield placements in each order: ROUNDS of them, each with the boxes at the last top first, until one is `enough`."""
    rounds = max(1, min(ROUNDS, PLACED // max(1, len(boxes))))
    for order in orders:
        for _ in range(rounds):
            yield (placement := place(order))
            if placement.height <= enough:
                break
            order = promote(order, boxes, placement)
