"""Partition the steps into streaming regions, so that the peak of bytes alive is least.

A partition is a path through the steps in their order. Each edge is a single step, or several that run as one (or one
by rows, with its result in place), and costs the bytes alive meanwhile. The path with the cheapest costliest edge is found by halving the bytes allowed, as in
msf-CNN (Huang, Zhang et al., 2024, "patch-based fusion as a min-max path"). Of the paths within them, the one that
joins least is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from ...program import Program, Splits
from ..liveness import ALIGNMENT, aligned
from .in_place import Replaceable, last_uses_of
from .region import Region, merge_region, region, region_of, replacing
from .region_builder import RegionBuilder, last_needs

#: most steps of one region
LONGEST = 256
#: rows at a time to try: longer loops cost less overhead
GROUPS = (16, 8, 4, 2)


@dataclass(frozen=True)
class StreamedSteps:
    """Steps `first` to `last`, included, run as one, `group` rows at a time.

    The rows go along `axis` of the first step's result. `nbytes` are alive meanwhile. With `in_place`, a result takes
    the place of an operand.
    """

    first: int
    last: int
    axis: int
    group: int
    nbytes: int
    in_place: bool = False


def apply_partition(
    program: Program, splits: Mapping[str, Splits], regions: Sequence[StreamedSteps], alignment: int = ALIGNMENT
) -> Program:
    """Replace the steps of each region by one.

    The last region goes first, so that the step numbers of the others stay.
    """
    for each in sorted(regions, key=lambda each: -each.first):
        found = region(program, splits, each.first, each.last, each.axis, each.group, alignment, each.in_place)
        assert found is not None
        program, _ = merge_region(program, found)
    return program


def best_partition(program: Program, splits: Mapping[str, Splits], alignment: int = ALIGNMENT) -> Partition:
    """Find the partition with the lowest peak; `splits` are those of the program's kernels.

    `program` keeps its order.
    """
    paths = Partitioner(program, splits, alignment)
    found = paths.within(max(paths.alone, default=0))
    assert found.complete
    low = paths.unavoidable
    while low < found.nbytes:
        middle = (low + found.nbytes) // 2
        path = paths.within(middle)
        if path.complete:
            found = path
        else:
            low = middle + 1
    return paths.coarser(found)


@dataclass(frozen=True)
class Partition:
    """Streamed steps in order, and their peak of bytes alive.

    The path leads as far as step `reached`, to the end if `complete`.
    """

    regions: tuple[StreamedSteps, ...]
    nbytes: int
    reached: int
    complete: bool


class Partitioner:
    """Search partitions of a program; the bytes alive at each edge are computed once, on demand."""

    def __init__(self, program: Program, splits: Mapping[str, Splits], alignment: int):
        self.program, self.splits, self.alignment = program, splits, alignment
        self.count = len(program.steps)
        self.sizes = [aligned(buffer.nbytes, alignment) for buffer in program.buffers]
        self.births, self.deaths = self._lives()
        self._needed = last_needs(program)
        #: by first step, the one after the last, and axis: the region, and a lower bound on its rings' bytes
        self._known: dict[tuple[int, int, int], Region | None] = {}
        self._known_in_place: dict[tuple[int, int, int], Region | None] = {}
        self._least: dict[tuple[int, int, int], int] = {}
        self._known_around: dict[int, list[int]] = {}
        self._replaceable = Replaceable(program, self.sizes, self.births, self.deaths, LONGEST)
        self._axes_of: dict[int, list[int]] = {}
        #: by first step and axis: the region grown so far, and the first step no region can take in
        self._builders: dict[tuple[int, int], RegionBuilder] = {}
        self._stopped: dict[tuple[int, int], int] = {}

    def _lives(self) -> tuple[list[int], list[int]]:
        """Return the first step of each buffer, and the one after its last.

        Inputs are alive before the first step, outputs after the last.
        """
        births, deaths = [self.count] * len(self.sizes), [0] * len(self.sizes)
        for number, step in enumerate(self.program.steps):
            for buffer in self.program.buffers_of(step.reads + step.writes):
                births[buffer], deaths[buffer] = min(births[buffer], number), number + 1
        for buffer in self.program.input_buffers():
            births[buffer] = -1
        for buffer in self.program.output_buffers():
            deaths[buffer] = self.count + 1
        return births, deaths

    def _splits_of(self, number: int) -> Splits:
        return self.splits[self.program.steps[number].kernel]

    @cached_property
    def alone(self) -> list[int]:
        """Return the bytes alive at each single step.

        A dying operand that may lie in the result is not counted.
        """
        changes = [0] * (self.count + 2)
        for size, birth, death in zip(self.sizes, self.births, self.deaths):
            if death > birth + 1:
                changes[max(birth, 0)] += size
                changes[death] -= size
        alive = accumulate(changes)
        return [nbytes - self._saved(number) for number, nbytes in zip(range(self.count), alive)]

    @property
    def unavoidable(self) -> int:
        """Return the bytes of the inputs alone, or of the outputs alone: no path is below."""
        inputs = sum(self.sizes[b] for b in self.program.input_buffers())
        return max(inputs, sum(self.sizes[b] for b in self.program.output_buffers()))

    def _bytes_around(self, first: int, end: int) -> int:
        """Return the bytes alive around a region of steps `first` up to `end`.

        Buffers made and used up inside the region are left out.
        """
        if first not in self._known_around:
            self._known_around[first] = list(self._all_around(first))
        return self._known_around[first][end - first - 1]

    def _all_around(self, first: int) -> Iterator[int]:
        """Yield the bytes around each region from `first`, one per end, up to the longest."""
        lives = list(zip(self.sizes, self.births, self.deaths))
        nbytes = sum(size for size, birth, death in lives if birth < first < death)
        changes = [0] * (self.count + 2)
        for size, birth, death in lives:
            if first <= birth < self.count:
                changes[birth + 1] += size
                changes[min(death, self.count + 1)] -= size
        for end in range(first + 1, min(first + LONGEST, self.count) + 1):
            nbytes += changes[end]
            yield nbytes

    def _saved(self, number: int) -> int:
        """Return the bytes a step saves by running in place."""
        step = self.program.steps[number]
        best = 0
        for overlay in step.in_place:
            (read,) = self.program.buffers_of((step.reads[overlay.read],)) or (None,)
            (write,) = self.program.buffers_of((step.writes[overlay.write],))
            if read is not None and self.deaths[read] == number + 1:
                best = max(best, min(self.sizes[read], self.sizes[write]))
        return best

    def within(self, most: int) -> Partition:
        """Return the path within `most` bytes that joins the fewest steps.

        If none leads to the end, it goes as far as possible.
        """
        joined: list[tuple[int, int] | None] = [None] * (self.count + 1)
        joined[0] = (0, 0)
        came: list[StreamedSteps | None] = [None] * (self.count + 1)
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
                streamed = self.streamed(first, end, most)
                if streamed is not None:
                    self._reach(joined, came, end, (here[0] + end - first, here[1] + 1), streamed)
                elif self._stops(first, end):
                    break
        reached = max(number for number, cost in enumerate(joined) if cost is not None)
        regions, at = [], reached
        while at > 0:
            streamed = came[at]
            at = at - 1 if streamed is None else streamed.first
            regions += [streamed] if streamed is not None else []
        return self._path(regions[::-1], reached)

    def _path(self, regions: Sequence[StreamedSteps], reached: int) -> Partition:
        inside = {number for streamed in regions for number in range(streamed.first, streamed.last + 1)}
        alone = [nbytes for number, nbytes in enumerate(self.alone[:reached]) if number not in inside]
        most = max([*alone, *(streamed.nbytes for streamed in regions)], default=0)
        return Partition(tuple(regions), most, reached, reached == self.count)

    @staticmethod
    def _reach(joined: list, came: list, end: int, cost: tuple[int, int], streamed: StreamedSteps | None) -> None:
        if joined[end] is None or cost < joined[end]:
            joined[end], came[end] = cost, streamed

    def streamed(self, first: int, end: int, most: int) -> StreamedSteps | None:
        """Return the fastest region of these steps within `most` bytes; None if there is none."""
        around = self._bytes_around(first, end)
        bound = around - self._replaceable.most(first, end)
        if bound > most:
            return None
        for axis in self._axes(first):
            place = (first, end, axis)
            if bound + self._least.get(place, 0) > most:
                continue
            if place not in self._known:
                builder = self._grown(*place)
                if builder is not None and place not in self._least:
                    self._least[place] = builder.least_bytes()
                    if bound + self._least[place] > most:
                        continue
                found = None if builder is None else region_of(builder, alignment=self.alignment)
                self._known[place] = found
                if builder is not None and found is not None and bound < around:
                    self._known_in_place[place] = replacing(builder, found, self._last_uses, self.alignment)
            for found, in_place in ((self._known[place], False), (self._known_in_place.get(place), True)):
                if found is not None and around + found.nbytes - found.saved <= most:
                    return StreamedSteps(first, end - 1, axis, 1, around + found.nbytes - found.saved, in_place)
        return None

    @cached_property
    def _last_uses(self) -> dict[int, int]:
        return last_uses_of(self.program)

    def _axes(self, first: int) -> list[int]:
        """List the axes to stream along, the fastest first.

        Vectors lie along the last one; a few channels at a time use a weight less often than all of them do.
        """
        if first not in self._axes_of:
            last = len(self.program.tensors[self.program.steps[first].writes[0]].shape) - 1
            axes = [rows.axis for rows in self._splits_of(first).rows]
            self._axes_of[first] = sorted(axes, key=lambda axis: (axis == last, axis <= 1, axis))
        return self._axes_of[first]

    def _grown(self, first: int, end: int, axis: int) -> RegionBuilder | None:
        """Return a builder with the steps from `first` up to `end`; None if they cannot run as one."""
        if end > self._stopped.get((first, axis), end):
            return None
        builder = self._builders.get((first, axis))
        if builder is None or builder.last >= end:
            builder = RegionBuilder(self.program, self.splits, first, axis, self._needed)
            self._builders[first, axis] = builder
        while builder.last < end - 1:
            if not builder.grow():
                self._stopped[first, axis] = builder.last
                return None
        return builder

    def _stops(self, first: int, end: int) -> bool:
        """Tell whether no region from `first` goes as far as `end`."""
        return all(self._stopped.get((first, axis), self.count) < end for axis in self._axes(first))

    def coarser(self, path: Partition) -> Partition:
        """Take as many rows at a time as there is room for."""
        return self._path([self._coarser(streamed, path.nbytes) for streamed in path.regions], path.reached)

    def _coarser(self, streamed: StreamedSteps, most: int) -> StreamedSteps:
        around = self._bytes_around(streamed.first, streamed.last + 1)
        for group in GROUPS:
            found = region(
                self.program, self.splits, streamed.first, streamed.last, streamed.axis, group, self.alignment, streamed.in_place
            )
            if found is not None and around + found.nbytes - found.saved <= most:
                return replace(streamed, group=group, nbytes=around + found.nbytes - found.saved)
        return streamed
