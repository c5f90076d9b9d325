"""Place buffers greedily: take them in some order, each into the lowest free gap.

No single order wins on every network, so the planner takes the best of several. A box is a buffer in time and memory:

    offset ▲   ┌───────┐
           │   │ box 1 │ ┌───────┐
           │ ┌─┴───────┴─┤ box 2 │
           │ │   box 0   │       │
           └─┴───────────┴───────┴──► steps
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..liveness import Lifetime, sum_alive


@dataclass(frozen=True)
class Box(Lifetime):
    """Buffer to place: alive in steps `[start, end)`, of `size` in any one unit, all > 0."""

    size: int

    @property
    def length(self) -> int:
        return self.end - self.start


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
    return [[(n, -box.size, boxes[n].size) for n in others] for box, others in zip(boxes, near, strict=True)]


def loads(boxes: Sequence[Box]) -> list[int]:
    """Sum the sizes of the boxes alive at each step."""
    return sum_alive([box.size for box in boxes], boxes, max((box.end for box in boxes), default=0))


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


def place_greedily(
    boxes: Sequence[Box],
    near: Sequence[Sequence[int]],
    apart: Sequence[Sequence[Conflict]],
    rounds: int,
    enough: int,
) -> Placement:
    """Return the lowest placement in `rounds` of each order, see `promoted`; stop at height `enough`."""
    found = promoted(orders(boxes, near), boxes, partial(place_lowest, boxes, apart), rounds, enough)
    best = next(found)
    while best.height > enough and (other := next(found, None)) is not None:
        best = min(best, other, key=lambda each: each.height)
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
    rounds: int,
    enough: int,
) -> Iterator[Placement]:
    """Yield placements in each order: `rounds` of them, each with the boxes at the last top first, until one is `enough`."""
    for order in orders:
        for _ in range(rounds):
            yield (placement := place(order))
            if placement.height <= enough:
                break
            order = promote(order, boxes, placement)
