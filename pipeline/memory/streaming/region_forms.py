"""Number the forms of regions: regions of one form take the same bytes, in whichever program they stand.

    steps      …  5     6     7     8  …        of one program
    read          –     5,2   6,3   –           steps that made what each reads
    numbers       #1    #2    #3    #9          form of the region from 5: its steps, with their distances
    steps      …  9     10    11    12 …        of another, with four more steps before
    numbers       #1    #2    #3    #7          the same as far as 11

A program with steps run again is the old one but for some steps, and most of its regions are known.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from ...program import Program, Splits, Step
from .live_bytes import births_and_deaths
from .region_builder import last_needs, may_stream

#: most numbers in use: more are forgotten, so that memory is bounded
MOST = 1_000_000


class KnownForms:
    """Bytes of regions by the number of their form, for one alignment; for several programs.

    `least` are lower bounds on the rings. `ways` are bytes, each with the way in which a result is in place. A form that is
    `ended` cannot run as one, however it grows.
    """

    def __init__(self, alignment: int):
        self.alignment = alignment
        self.least: dict[int, int] = {}
        self.ways: dict[int, list[tuple[int, int]]] = {}
        self.ended: set[int] = set()
        self._numbers: dict[Any, int] = {}

    def forget(self) -> None:
        """Forget all if there are too many forms; between programs only, since numbers are given anew."""
        if len(self._numbers) > MOST:
            for each in (self.least, self.ways, self.ended, self._numbers):
                each.clear()

    def number(self, form: Any) -> int:
        """Return the number of a form: equal forms have one number."""
        return self._numbers.setdefault(form, len(self._numbers))


class RegionForms:
    """Forms of the regions of one program, step by step."""

    def __init__(self, program: Program, splits: Mapping[str, Splits], known: KnownForms):
        self._program, self._splits, self._known = program, splits, known
        self._needed, self._given = last_needs(program), program.input_buffers()
        _, self._deaths = births_and_deaths(program)
        #: by step: all but the distances, and the distances to earlier steps
        self._steps: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        self._numbers: dict[tuple[int, int], int] = {}
        wrote: dict[int, int] = {}
        used: dict[int, tuple[int, int]] = {}
        for number, step in enumerate(program.steps):
            distances: list[int] = []
            for tensor in step.reads + step.writes:
                buffer = program.tensors[tensor].buffer
                if buffer is not None:
                    read, written = used.get(buffer, (number, number))
                    distances += (number - wrote.get(tensor, number), number - read, number - written)
            self._steps.append((self._alone(number, step), tuple(distances), tuple(sorted(set(distances)))))
            for tensors, writing in ((step.reads, False), (step.writes, True)):
                for tensor in tensors:
                    buffer = program.tensors[tensor].buffer
                    if buffer is not None:
                        read, written = used.get(buffer, (number - len(program.steps) - 1,) * 2)
                        used[buffer] = (read, number) if writing else (number, written)
                        if writing:
                            wrote[tensor] = number

    def start(self, axis: int) -> int:
        """Return the form of an empty region along an axis."""
        return self._known.number(("axis", axis))

    def grown(self, form: int, first: int, step: int) -> int:
        """Return the form of a region from `first` with one `step` more."""
        alone, distances, different = self._steps[step]
        reach = bisect_right(different, step - first)
        inside = self._numbers.get((step, reach))
        if inside is None:
            within = different[reach - 1] if reach else 0
            inside = self._known.number((alone, tuple(each if each <= within else 0 for each in distances)))
            self._numbers[step, reach] = inside
        return self._known.number((form, inside))

    def _alone(self, number: int, step: Step) -> int:
        """Number the kind of a step: whether it streams, its splits, tensors, and which of them nobody needs after it."""
        tensors, buffers = self._program.tensors, self._program.buffers
        places: dict[tuple[str, int], int] = {}
        accesses: list[tuple[object, ...]] = []
        for tensor in step.reads + step.writes:
            what = tensors[tensor]
            if what.buffer is None:
                accesses.append((what.shape, what.dtype))
                continue
            accesses.append((
                what.shape, what.dtype, what.offset, buffers[what.buffer].nbytes,
                self._needed.get(tensor, 0) <= number, self._deaths[what.buffer] <= number + 1,
                places.setdefault(("tensor", tensor), len(places)), places.setdefault(("buffer", what.buffer), len(places)),
            ))  # fmt: skip
        free = may_stream(step), self._given.isdisjoint(self._program.buffers_of(step.writes))
        return self._known.number((free, self._splits[step.kernel].key, len(step.reads), tuple(accesses)))
