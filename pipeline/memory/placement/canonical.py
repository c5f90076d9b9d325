"""Search depth-first for a canonical placement of a given height.

The search is MiniMalloc's (Moffitt, ASPLOS 2023). A placement is canonical when every box is on the ground or on top
of a box it meets in time. Any placement can be pushed down into a canonical one, so it is enough to place boxes by
rising offset, each at the lowest offset it still has. Together with the pruning below the search is exact: it stops
early only when its work is used up.

Around the search: boxes that find a place in any case are set aside first (the "simplify" step of graph colouring
register allocation, Chaitin 1982, here for boxes of different sizes), and groups that no longer meet in time are solved
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .greedy import Box, Placement, crowding, neighbours, place

#: most boxes for which the search is exact, whatever its work
EXACT_BOXES = 9
#: deepest recursion, limited for Python's stack
DEPTH = 250
#: work that a search of so few boxes cannot use up
NO_LIMIT = 1 << 60


class OutOfWork(Exception):
    """Signal that the work of one search is used up; caught in this module."""


@dataclass
class Work:
    """Budget of boxes the search may still look at: deterministic, a few million per second."""

    left: int

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise OutOfWork


def lower_placement(boxes: Sequence[Box], best: Placement, bound: int, work: int) -> Placement:
    """Find a placement no higher than `best`, if possible of height `bound`.

    It is the least one for up to `EXACT_BOXES` boxes. `work` limits the boxes looked at in all searches together. The
    bound is tried first, since most networks reach it. Then the heights between the highest refuted (or given up) and
    the best found are halved.
    """
    near = neighbours(boxes)
    left = NO_LIMIT if len(boxes) <= EXACT_BOXES else work
    least = height = bound
    while least < best.height and left > 0:
        share = Work(left if left > work else min(left, work // 4))
        allowed = share.left
        found = _search(boxes, near, height, share)
        left -= allowed - max(share.left, 0)
        if found is None:
            least = height + 1
        else:
            best = found
        height = (least + best.height - 1) // 2
    return best


def _search(boxes: Sequence[Box], near: Sequence[Sequence[int]], height: int, work: Work) -> Placement | None:
    """Find a placement of at most `height`; None if none exists, or the work did not suffice."""
    aside = set_aside(boxes, near, height)
    core = sorted(set(range(len(boxes))) - set(aside))
    ranks = _preorders(boxes)
    for turn, rank in enumerate(ranks, 1):
        allowed = Work(work.left * turn // len(ranks))
        granted = allowed.left
        search = Search(boxes, near, height, rank, allowed)
        try:
            if not search.solve(core):
                return None
            # The boxes set aside go into the gaps, the last one set aside first.
            return place(boxes, near, aside[::-1], fixed=search.offset)
        except OutOfWork:
            continue
        finally:
            work.left -= granted - max(allowed.left, 0)
    return None


def set_aside(boxes: Sequence[Box], near: Sequence[Sequence[int]], height: int) -> list[int]:
    """List boxes that fit below `height` however the rest is placed, in the order found.

    A neighbour of size n forbids a box of size s at most n + s − 1 of the height − s + 1 offsets it could have. Boxes
    set aside later may rely on boxes set aside earlier being placed after them.
    """
    blocked = [sum(boxes[n].size + box.size - 1 for n in near[b]) for b, box in enumerate(boxes)]
    gone = [False] * len(boxes)
    found: list[int] = []
    todo = list(range(len(boxes)))[::-1]
    while todo:
        b = todo.pop()
        if gone[b] or blocked[b] > height - boxes[b].size:
            continue
        gone[b] = True
        found.append(b)
        for n in near[b]:
            blocked[n] -= boxes[b].size + boxes[n].size - 1
            todo.append(n)
    return found


def _preorders(boxes: Sequence[Box]) -> list[list[int]]:
    """List ranks of boxes at one offset, of which the lowest is tried first: the most often successful ranks first."""
    crowd = crowding(boxes)
    by_crowd = [(-crowd[b], -box.length * box.size, -box.length) for b, box in enumerate(boxes)]
    by_length = [(-box.length, -box.length * box.size, -crowd[b]) for b, box in enumerate(boxes)]
    by_size = [(-box.size, -box.length) for box in boxes]
    found = []
    for keys in (by_crowd, by_length, by_size):
        rank = [0] * len(boxes)
        for position, number in enumerate(sorted(range(len(boxes)), key=keys.__getitem__)):
            rank[number] = position
        found.append(rank)
    return found


class Search:
    """Search depth-first below `height`; `solve` fills in `offset`, -1 for an unplaced box.

    `least[b]` is the lowest offset left for an unplaced box. Backtracking undoes its changes from a trail.
    """

    def __init__(
        self, boxes: Sequence[Box], near: Sequence[Sequence[int]], height: int, rank: Sequence[int], work: Work
    ):
        self.boxes, self.near, self.height, self.rank, self.work = boxes, near, height, rank, work
        self.offset = [-1] * len(boxes)
        self.least = [0] * len(boxes)
        self.core = [False] * len(boxes)
        self.trail: list[tuple[int, int]] = []
        self.depth = 0

    def solve(self, free: Sequence[int]) -> bool:
        """Place the boxes `free`; False if that is impossible. Raises OutOfWork."""
        for box in free:
            self.core[box] = True
        return self._apart(sorted(free, key=lambda b: (self.boxes[b].start, b)), 0, -1)

    def _apart(self, free: list[int], base: int, tie: int) -> bool:
        """Place boxes, sorted by start, in groups disjoint in time; one failing group fails all."""
        group: list[int] = []
        end = 0
        for box in [*free, None]:
            if group and (box is None or self.boxes[box].start >= end):
                if not self._feasible(group, base) or not self._place_one(group, base, tie):
                    return False
                group = []
            if box is not None:
                group.append(box)
                end = max(end, self.boxes[box].end)
        return True

    def _feasible(self, group: list[int], base: int) -> bool:
        """Return whether the unplaced boxes can fit below the height at every step.

        No box can be put below `base`, the offset of the box placed last. The sum alive changes only at the start of a
        box, so only those steps are looked at.
        """
        alive: list[int] = []
        for position, box in enumerate(group):
            start = self.boxes[box].start
            alive = [b for b in alive if self.boxes[b].end > start]
            alive.append(box)
            if position + 1 < len(group) and self.boxes[group[position + 1]].start == start:
                continue
            self.work.spend(len(alive))
            low = max(base, min(self.least[b] for b in alive))
            if low + sum(self.boxes[b].size for b in alive) > self.height:
                return False
        return True

    def _place_one(self, group: list[int], base: int, tie: int) -> bool:
        """Place one box of the group, then the rest; try each canonical next box."""
        least, boxes, rank = self.least, self.boxes, self.rank
        self.work.spend(len(group))
        if self.depth >= DEPTH:
            raise OutOfWork
        self.depth += 1
        # A box put here or higher would leave room below it for one that comes later, which is then not pushed down.
        ceiling = min(least[b] + boxes[b].size for b in group)
        choices = [(least[b], rank[b], b) for b in group if least[b] < ceiling and (least[b], rank[b]) > (base, tie)]
        for low, position, box in sorted(choices):
            mark = len(self.trail)
            self.offset[box] = low
            top = low + boxes[box].size
            rest = [b for b in group if b != box]
            covered, fits = False, top <= self.height
            for other in self.near[box] if fits else ():
                if self.core[other] and self.offset[other] < 0:
                    covered = True
                    if least[other] < top:
                        self.trail.append((other, least[other]))
                        least[other] = top
                        fits = fits and top + boxes[other].size <= self.height
            if fits and self._apart(rest, low, position):
                return True
            self._undo(mark, group)
            if fits and not covered:
                break  # It touches no unplaced box: no other choice can do better.
        self.depth -= 1
        return False

    def _undo(self, mark: int, group: list[int]) -> None:
        while len(self.trail) > mark:
            box, value = self.trail.pop()
            self.least[box] = value
        for box in group:
            self.offset[box] = -1
