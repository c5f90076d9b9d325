"""Count the bytes alive at each step of a program, and around each run of steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from ...program import Program
from ..liveness import aligned


def births_and_deaths(program: Program) -> tuple[list[int], list[int]]:
    """Return the first step of each buffer, and the one after its last.

    Inputs are alive before the first step, outputs after the last.
    """
    births, deaths = [len(program.steps)] * len(program.buffers), [0] * len(program.buffers)
    for number, step in enumerate(program.steps):
        for buffer in program.buffers_of(step.reads + step.writes):
            births[buffer], deaths[buffer] = min(births[buffer], number), number + 1
    for buffer in program.input_buffers():
        births[buffer] = -1
    for buffer in program.output_buffers():
        deaths[buffer] = len(program.steps) + 1
    return births, deaths


class AliveBytes:
    """Lifetimes of the buffers of one program, and the bytes alive by them; runs have `longest` steps at most."""

    def __init__(self, program: Program, alignment: int, longest: int):
        self.program, self.alignment, self._longest = program, alignment, longest
        self.count = len(program.steps)
        self.sizes = [aligned(buffer.nbytes, alignment) for buffer in program.buffers]
        self.births, self.deaths = births_and_deaths(program)
        #: by first step: what is known of the regions asked for, and of those to come
        self._known_around: dict[int, tuple[list[tuple[int, int]], Iterator[tuple[int, int]]]] = {}

    @cached_property
    def alone(self) -> list[int]:
        """Return the bytes alive at each single step.

        A dying operand that may be stored in the result is not counted.
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

    def bytes_around(self, first: int, end: int) -> int:
        """Return the bytes alive around a region of steps `first` up to `end`.

        Buffers made and used up inside the region are left out.
        """
        return self.bounds_around(first, end)[0]

    def bounds_around(self, first: int, end: int) -> tuple[int, int]:
        """Return the bytes around a region, and the most that it saves by a result in place of an operand."""
        if first not in self._known_around:
            self._known_around[first] = [], self._all_around(first)
        found, more = self._known_around[first]
        while len(found) < end - first:
            found.append(next(more))
        return found[end - first - 1]

    def _all_around(self, first: int) -> Iterator[tuple[int, int]]:
        """Yield the `bounds_around` of each region from `first`, one per end, up to the longest."""
        across = self._across
        outside = kept = across[first]  # bytes alive before the region; of these, those still alive after it
        operand = result = 0  # the largest that dies in the region, and the largest written there
        for end in range(first + 1, min(first + self._longest, self.count) + 1):
            for size, birth, is_read in self._dying[end - 1]:
                if birth < first:
                    kept -= size
                    operand = max(operand, size * is_read)
            result = max(result, self._written[end - 1])
            yield outside + across[end] - kept, min(operand, result)

    @cached_property
    def _dying(self) -> list[list[tuple[int, int, bool]]]:
        """Return by step the size and the birth of each buffer that it is the last to use, and whether it reads it."""
        found: list[list[tuple[int, int, bool]]] = [[] for _ in self.program.steps]
        for number, step in enumerate(self.program.steps):
            reads = self.program.buffers_of(step.reads)
            for buffer in self.program.buffers_of(step.reads + step.writes):
                if self.deaths[buffer] == number + 1:
                    found[number].append((self.sizes[buffer], self.births[buffer], buffer in reads))
        return found

    @cached_property
    def _written(self) -> list[int]:
        """Return by step the size of the largest buffer it writes, inputs left out."""
        given, writes = self.program.input_buffers(), [self.program.buffers_of(s.writes) for s in self.program.steps]
        return [max((self.sizes[each] for each in buffers if each not in given), default=0) for buffers in writes]

    @cached_property
    def _across(self) -> list[int]:
        """Return by step the bytes of the buffers made before it and used at it or later."""
        changes = [0] * (self.count + 2)
        for size, birth, death in zip(self.sizes, self.births, self.deaths):
            if death > birth + 1:
                changes[birth + 1] += size
                changes[death] -= size
        return list(accumulate(changes))

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
