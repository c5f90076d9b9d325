"""Search the path of regions within so many bytes: `Partitioner`, for one program in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from ...program import Program, Splits
from ..liveness import aligned
from .in_place import Replaceable, last_uses_of
from .region import Region, region
from .region_builder import RegionBuilder, last_needs
from .region_bytes import region_bytes
from .region_forms import KnownForms, RegionForms

#: most steps of one region
LONGEST = 256
#: most rows at a time: longer loops cost less overhead, and weights are read less often
MOST_ROWS = 16


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

    def __init__(
        self, program: Program, splits: Mapping[str, Splits], alignment: int, known: KnownForms | None = None
    ):
        self.program, self.splits, self.alignment = program, splits, alignment
        self.count = len(program.steps)
        self.sizes = [aligned(buffer.nbytes, alignment) for buffer in program.buffers]
        self.births, self.deaths = self._lives()
        self._needed = last_needs(program)
        self._known = KnownForms(alignment) if known is None else known
        #: by first step and axis: the forms of the empty region, of that with one step, and so on
        self._chains: dict[tuple[int, int], list[int]] = {}
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
            form = self._form(first, end, axis)
            if form is None or bound + self._known.least.get(form, 0) > most:
                continue
            replaces = bound < around
            if form not in self._known.rings or (replaces and form not in self._known.in_place):
                builder = self._grown(first, end, axis)
                if builder is None:
                    continue
                self._known.least[form] = builder.least_bytes
                if bound + builder.least_bytes > most:
                    continue
                found = region_bytes(builder, self.alignment, self._last_uses if replaces else None, most - bound)
                if isinstance(found, int):
                    self._known.least[form] = found
                    continue
                self._known.keep(form, found, replaces)
            ways = ((self._known.rings[form], False), (self._known.in_place[form] if replaces else None, True))
            for nbytes, in_place in ways:
                if nbytes is not None and around + nbytes <= most:
                    return StreamedSteps(first, end - 1, axis, 1, around + nbytes, in_place)
        return None

    @cached_property
    def _forms(self) -> RegionForms:
        return RegionForms(self.program, self.splits, self._known)

    def _form(self, first: int, end: int, axis: int) -> int | None:
        """Return the form of a region; None if it is known that its steps cannot run as one."""
        if end > self._stopped.get((first, axis), end):
            return None
        chain = self._chains.get((first, axis))
        if chain is None:
            chain = self._chains[first, axis] = [self._forms.start(axis)]
        for step in range(first + len(chain) - 1, end):
            form = self._forms.grown(chain[-1], first, step)
            if form in self._known.ended:
                self._stopped[first, axis] = step
                return None
            chain.append(form)
        return chain[end - first]

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
                self._known.ended.add(self._chains[first, axis][builder.last + 1 - first])
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
        for group in self._groups(streamed):
            found = self._region(streamed, group)
            if found is not None and around + found.nbytes - found.saved <= most:
                return replace(streamed, group=group, nbytes=around + found.nbytes - found.saved)
        return streamed

    def _region(self, streamed: StreamedSteps, group: int) -> Region | None:
        return region(
            self.program, self.splits, streamed.first, streamed.last, streamed.axis, group, self.alignment, streamed.in_place
        )

    def _groups(self, streamed: StreamedSteps) -> list[int]:
        """List the rows to take at a time, cheapest first.

        To begin a group is taken to cost half a row of it, rows of a last group that overlaps are computed again, and a
        multiple of four fits vectors and tiles.
        """
        rows = self._region(streamed, 1)
        extents = [] if rows is None else [stage.extent for stage in rows.stages]

        def cost(group: int) -> int:
            return sum(-(-extent // group) for extent in extents) * (2 * group + 1) * (16 if group % 4 == 0 else 17)

        cheaper = [group for group in range(2, MOST_ROWS + 1) if cost(group) < cost(1)]
        return sorted(cheaper, key=lambda group: (cost(group), -group))
