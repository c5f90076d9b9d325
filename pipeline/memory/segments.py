"""Which steps to run as one, so that the most that is alive at any step is least.

A path through the steps in their order: each edge is a step by itself, or several that run as one, and costs the bytes
that are alive meanwhile. The path whose costliest edge is cheapest is found by halving the bytes allowed, as in msf-CNN
(Huang, Zhang et al., 2024, "patch-based fusion as a min-max path"); of the paths within them, the one that joins least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..graph import Program, Splits
from .bands import Region, may_grow, region
from .liveness import ALIGNMENT, aligned

#: steps that run as one, at most
LONGEST = 64
#: rows at a time that are tried, so that loops are worth their while
GROUPS = (16, 8, 4, 2)


@dataclass(frozen=True)
class Segment:
    """Steps `first` to `last`, included, as one, by the rows along `axis` of the first one's result, `group` at a time.

    `nbytes` are alive while it runs.
    """

    first: int
    last: int
    axis: int
    group: int
    nbytes: int


def best_segments(
    program: Program, splits: Sequence[Splits], alignment: int = ALIGNMENT, least: int = 0
) -> tuple[int, list[Segment]]:
    """The least that is alive at the fullest step, in bytes, and the segments that bring it there, in order.

    `program` keeps its order; `splits` are those of its steps. It goes no lower than `least`.
    """
    steps = _Steps(program, splits, alignment)
    high = max(steps.alone, default=0)
    found = steps.path(high)
    low = max(least, steps.unavoidable)
    while low < high:
        middle = (low + high) // 2
        path = steps.path(middle)
        if path is None:
            low = middle + 1
        else:
            found = path
            high = max((each.nbytes for each in path), default=0)
            high = max(high, steps.most_alone(path), low)
    assert found is not None
    return high, [steps.coarser(segment, high) for segment in found]


class _Steps:
    """What is alive at each step, alone or with others, worked out as it is asked for."""

    def __init__(self, program: Program, splits: Sequence[Splits], alignment: int):
        self.program, self.splits, self.alignment = program, splits, alignment
        self.count = len(program.steps)
        self.sizes = [aligned(buffer.nbytes, alignment) for buffer in program.buffers]
        self.births, self.deaths = self._lives()
        self._known: dict[tuple[int, int], Segment | None] = {}
        self._grows: dict[tuple[int, int], int] = {}

    def _lives(self) -> tuple[list[int], list[int]]:
        """The first step at which each buffer is alive, and the one at which it no longer is."""
        births, deaths = [self.count] * len(self.sizes), [0] * len(self.sizes)
        for number, step in enumerate(self.program.steps):
            for buffer in self.program.buffers_of(step.reads + step.writes):
                births[buffer], deaths[buffer] = min(births[buffer], number), number + 1
        for buffer in self.program.input_buffers():
            births[buffer] = -1
        for buffer in self.program.output_buffers():
            deaths[buffer] = self.count + 1
        return births, deaths

    @cached_property
    def alone(self) -> list[int]:
        """The bytes alive at each step by itself; an operand that may lie in the result, and dies, is not counted."""
        return [self._around(number, number + 1) - self._saved(number) for number in range(self.count)]

    @property
    def unavoidable(self) -> int:
        inputs = sum(self.sizes[b] for b in self.program.input_buffers())
        return max(inputs, sum(self.sizes[b] for b in self.program.output_buffers()))

    def _around(self, first: int, end: int) -> int:
        """The bytes of all that is alive while steps `first` to `end` run as one, but for what is made and used up."""
        lives = zip(self.sizes, self.births, self.deaths)
        return sum(size for size, birth, death in lives if birth < end and death > first and (birth < first or death > end))

    def _saved(self, number: int) -> int:
        step = self.program.steps[number]
        best = 0
        for overlay in step.in_place:
            (read,) = self.program.buffers_of((step.reads[overlay.read],)) or (None,)
            (write,) = self.program.buffers_of((step.writes[overlay.write],))
            if read is not None and self.deaths[read] == number + 1:
                best = max(best, min(self.sizes[read], self.sizes[write]))
        return best

    def path(self, most: int) -> list[Segment] | None:
        """The segments of a path that never needs more than `most` bytes and joins the fewest steps; None if none."""
        joined: list[tuple[int, int] | None] = [None] * (self.count + 1)
        joined[0] = (0, 0)
        came: list[Segment | None] = [None] * (self.count + 1)
        for first in range(self.count):
            here = joined[first]
            if here is None:
                continue
            if self.alone[first] <= most:
                self._reach(joined, came, first + 1, here, None)
            blocked = next((k for k in range(first, min(first + LONGEST, self.count)) if self.alone[k] > most), None)
            if blocked is None:
                continue
            for end in range(blocked + 1, min(first + LONGEST, self.count) + 1):
                if end - first > 1:
                    segment = self.segment(first, end, most)
                    if segment is not None and segment.nbytes <= most:
                        self._reach(joined, came, end, (here[0] + end - first, here[1] + 1), segment)
                    elif self._stops(first, end):
                        break
        if joined[self.count] is None:
            return None
        found, at = [], self.count
        while at > 0:
            segment = came[at]
            at = at - 1 if segment is None else segment.first
            found += [segment] if segment is not None else []
        return found[::-1]

    @staticmethod
    def _reach(joined: list, came: list, end: int, cost: tuple[int, int], segment: Segment | None) -> None:
        if joined[end] is None or cost < joined[end]:
            joined[end], came[end] = cost, segment

    def segment(self, first: int, end: int, most: int) -> Segment | None:
        """The best way to run these steps as one; None where there is none, or where it surely needs more than `most`."""
        if (first, end) not in self._known:
            around = self._around(first, end)
            if around > most:
                return None
            found = [self._along(first, end, rows.axis, 1, around) for rows in self.splits[first].rows]
            best = min((each for each in found if each is not None), key=lambda each: each.nbytes, default=None)
            self._known[first, end] = best
        return self._known[first, end]

    def _along(self, first: int, end: int, axis: int, group: int, around: int) -> Segment | None:
        if end - 1 > self._grows.get((first, axis), self.count):
            return None
        found: Region | None = region(self.program, self.splits, first, end - 1, axis, group, self.alignment)
        if found is None:
            if not may_grow(self.program, self.splits, first, end - 1, axis):
                self._grows[first, axis] = end - 2
            return None
        return Segment(first, end - 1, axis, group, around + found.nbytes)

    def _stops(self, first: int, end: int) -> bool:
        """Whether no segment from `first` goes on beyond `end`."""
        return all(self._grows.get((first, rows.axis), self.count) < end for rows in self.splits[first].rows)

    def coarser(self, segment: Segment, most: int) -> Segment:
        """With as many rows at a time as there is room for."""
        first, end = segment.first, segment.last + 1
        around = self._around(first, end)
        for group in GROUPS:
            found = self._along(first, end, segment.axis, group, around)
            if found is not None and found.nbytes <= most:
                return found
        return segment

    def most_alone(self, path: Sequence[Segment]) -> int:
        """The most that is alive at a step that no segment takes in."""
        joined = {number for segment in path for number in range(segment.first, segment.last + 1)}
        return max((nbytes for number, nbytes in enumerate(self.alone) if number not in joined), default=0)
