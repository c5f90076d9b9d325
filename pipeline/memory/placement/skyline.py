"""Place boxes by skyline: fill the lowest valley with the best fitting box, in rounds that learn.

    offset ▲        ┌───────┐
           │ ┌────┐ │ box 1 │      between box 0 and box 1 is the lowest valley; where no box that is left
           │ │ 0  └─┤       │      lies within it, its floor is raised to the lower of its sides
           └─┴──────┴───────┴──► steps

This is best-fit skyline packing of a strip (Burke, Kendall & Whitwell, Operations Research 2004), but a box has a fixed
place in time. A round ends when the boxes left at some step cannot stay below the wanted height any more. These boxes
are preferred from then on ("squeaky wheel", Joslin & Clements 1999), and that is slowly forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .greedy import Box, Placement, loads

#: weights of a box's priority: each valley side it touches, the load left around it, having been left, chance
SIDE, LOAD, LEFT, CHANCE = 0.1, 1.0, 0.02, 0.05
#: share of the priority for having been left that stays from round to round
MEMORY = 0.98
#: share of the excess over the bound that the next round may keep
STRIDE = 0.97


def skyline_placement(boxes: Sequence[Box], best: Placement, bound: int, work: int) -> Placement:
    """Find a placement no higher than `best`: the lowest of many rounds. Deterministic.

    The rounds look at about `work` boxes together. The constants were tried on rectangles cut into 150 to 450 boxes;
    none of them matters much.
    """
    random = Random(0)
    tallest, last = max(box.size for box in boxes), max(box.end for box in boxes)
    large = [(box.length * box.size / (tallest * last)) ** 0.5 for box in boxes]
    left = [0.0] * len(boxes)
    while work > 0 and best.height > bound:
        wanted = [one + other + CHANCE * random.random() for one, other in zip(large, left, strict=True)]
        limit = min(best.height - 1, bound + int((best.height - bound) * STRIDE))
        offsets, missing, looked = fill(boxes, wanted, limit)
        work -= looked
        if not missing:
            tops = (offset + box.size for offset, box in zip(offsets, boxes, strict=True))
            best = Placement(tuple(offsets), max(tops))
        left = [MEMORY * each for each in left]
        for box in missing:
            left[box] += LEFT
    return best


def fill(boxes: Sequence[Box], wanted: Sequence[float], limit: int) -> tuple[list[int], list[int], int]:
    """Fill the skyline once, the most `wanted` box of each valley first, below `limit`.

    Returns the offsets, the boxes left at the step that cannot stay within `limit` (none if all fit), and the number of
    boxes looked at.
    """
    load = loads(boxes)
    most = max(load)
    starting: list[list[int]] = [[] for _ in load]
    for number, box in enumerate(boxes):
        starting[box.start].append(number)
    # No box is left at a step without load: put a wall of any height there.
    wall = sum(box.size for box in boxes) + 1
    level = [0 if each else wall for each in load]
    offsets = [-1] * len(boxes)
    looked = 0
    while (low := min(level)) < wall:
        start = end = level.index(low)
        while end < len(level) and level[end] == low:
            end += 1
        chosen, most_wanted = None, -1.0
        for step in range(start, end):
            looked += len(starting[step])
            for number in starting[step]:
                box = boxes[number]
                if box.end <= end:
                    sides = (box.start == start) + (box.end == end)
                    value = wanted[number] + SIDE * sides + LOAD * max(load[box.start : box.end]) / most
                    if value > most_wanted:
                        chosen, most_wanted = number, value
        if chosen is None:
            raised = min(level[start - 1 : start] + level[end : end + 1])
            fullest = max(range(start, end), key=load.__getitem__)
            if raised + load[fullest] > limit:
                left = [n for n, b in enumerate(boxes) if offsets[n] < 0 and b.start <= fullest < b.end]
                return offsets, left, looked
            level[start:end] = [raised] * (end - start)
            continue
        box = boxes[chosen]
        starting[box.start].remove(chosen)
        offsets[chosen] = low
        for step in range(box.start, box.end):
            load[step] -= box.size
            level[step] = low + box.size if load[step] else wall
    return offsets, [], looked
