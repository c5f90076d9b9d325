"""Search the path of regions within so many bytes: `Partitioner`, for one program in its order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ...program import Program, Splits
from .in_place import GROWING, IN_PLACE
from .live_bytes import AliveBytes
from .region import region_of, replace_operands
from .region_builder import RegionBuilder, last_needs
from .region_forms import KnownForms, RegionForms

_T = TypeVar("_T")
#: most steps of one region
LONGEST = 256


@dataclass(frozen=True)
class StreamedSteps:
    """Steps `first` to `last`, included, run as one, `group` rows at a time.

    The rows go along `axis` of the first step's result. `nbytes` are alive meanwhile. With `in_place`, a result takes
    the place of an operand: IN_PLACE or GROWING.
    """

    first: int
    last: int
    axis: int
    group: int
    nbytes: int
    in_place: int = 0


@dataclass(frozen=True)
class Partition:
    """Streamed steps in order, and their peak of bytes alive.

    The path leads as far as step `reached`, to the end if `complete`.
    """

    regions: tuple[StreamedSteps, ...]
    nbytes: int
    reached: int
    complete: bool


class Partitioner(AliveBytes):
    """Search partitions of a program; the bytes alive at each edge are computed once, on demand."""

    def __init__(
        self,
        program: Program,
        splits: Mapping[str, Splits],
        alignment: int,
        known: KnownForms | None = None,
        growing: bool = False,
    ):
        super().__init__(program, alignment, LONGEST)
        self.splits = splits
        self._growing = growing
        self._needed = last_needs(program)
        self._known = KnownForms(alignment) if known is None else known
        #: by first step and axis: the forms of the empty region, of that with one step, and so on
        self._chains: dict[tuple[int, int], list[int]] = {}
        self._axes_of: dict[int, list[int]] = {}
        #: by first step and axis: the region grown so far, and the first step no region can take in
        self._builders: dict[tuple[int, int], RegionBuilder] = {}
        self._stopped: dict[tuple[int, int], int] = {}
        #: lower bound on the bytes within which the last search would have gone further
        self.beyond = math.inf

    def _splits_of(self, number: int) -> Splits:
        return self.splits[self.program.steps[number].kernel]

    def within(self, most: int) -> Partition:
        """Return the path within `most` bytes that joins the fewest steps.

        If none leads to the end, it goes as far as possible.
        """
        self.beyond = math.inf
        joined: list[tuple[int, int] | None] = [None] * (self.count + 1)
        joined[0] = (0, 0)
        came: list[StreamedSteps | None] = [None] * (self.count + 1)
        for first in range(self.count):
            here = joined[first]
            if here is None:
                continue
            if self.alone[first] <= most:
                self._reach(joined, came, first + 1, here, None)
            else:
                self.beyond = min(self.beyond, self.alone[first])
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
        return self.path_of(regions[::-1], reached)

    def path_of(self, regions: Sequence[StreamedSteps], reached: int) -> Partition:
        """Return the path of these regions and single steps, as far as step `reached`."""
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
        around, most_saved = self.bounds_around(first, end)
        bound = around - most_saved
        if bound > most:
            self.beyond = min(self.beyond, bound)
            return None
        for axis in self._axes(first):
            place = first, end, axis
            least = self._measured(self._known.least, place, lambda builder: builder.least_bytes)
            if least is None or bound + least > most:
                self.beyond = min(self.beyond, math.inf if least is None else bound + least)
                continue
            for nbytes, in_place in self._measured(self._known.ways, place, self._ways) or ():
                if around + nbytes <= most:
                    return StreamedSteps(first, end - 1, axis, 1, around + nbytes, in_place)
                self.beyond = min(self.beyond, around + nbytes)
        return None

    def _measured(
        self, known: dict[int, _T], place: tuple[int, int, int], measure: Callable[[RegionBuilder], _T]
    ) -> _T | None:
        """Return what is measured of a region, once for its form; None if its steps cannot run as one."""
        form = self._form(*place)
        if form is not None and form not in known:
            builder = self._grown(*place)
            if builder is None:
                return None
            known[form] = measure(builder)
        return None if form is None else known[form]

    def _ways(self, builder: RegionBuilder) -> list[tuple[int, int]]:
        """List the bytes of a region, without and with a result in place of operands, as far as there is one."""
        apart = region_of(builder)
        over = replace_operands(builder, apart, self.deaths, self._growing) if apart is not None else None
        ways = (apart, 0), (over, GROWING if self._growing else IN_PLACE)
        return [(found.nbytes(self.program, self.alignment), way) for found, way in ways if found is not None]

    @cached_property
    def forms(self) -> RegionForms:
        return RegionForms(self.program, self.splits, self._known)

    def _form(self, first: int, end: int, axis: int) -> int | None:
        """Return the form of a region; None if it is known that its steps cannot run as one."""
        if end > self._stopped.get((first, axis), end):
            return None
        chain = self._chains.get((first, axis))
        if chain is None:
            chain = self._chains[first, axis] = [self.forms.start(axis)]
        for step in range(first + len(chain) - 1, end):
            form = self.forms.grown(chain[-1], first, step)
            if form in self._known.ended:
                self._stopped[first, axis] = step
                return None
            chain.append(form)
        return chain[end - first]

    def _axes(self, first: int) -> list[int]:
        """List the axes to stream along, the fastest first.

        Vectors go along the last one; a few channels at a time use a weight less often than all of them do.
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
                self._known.ended.add(self._chains[first, axis][builder.last + 1 - first])
                self._stopped[first, axis] = builder.last
                return None
        return builder

    def _stops(self, first: int, end: int) -> bool:
        """Return whether no region from `first` goes as far as `end`."""
        return all(self._stopped.get((first, axis), self.count) < end for axis in self._axes(first))
