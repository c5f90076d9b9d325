"""Count the bytes alive at each step of a program in its order, and around each run of steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from ...program import Program
from ..liveness import aligned


class AliveBytes:
    """Lifetimes of the buffers of one program, and the bytes alive by them; runs have `longest` steps at most."""

    def __init__(self, program: Program, alignment: int, longest: int):
        self.program, self.alignment, self._longest = program, alignment, longest
        self.count = len(program.steps)
        self.sizes = [aligned(buffer.nbytes, alignment) for buffer in program.buffers]
        self.births, self.deaths = self._lives()
        self._known_around: dict[int, list[int]] = {}

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

    def bytes_around(self, first: int, end: int) -> int:
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
        for end in range(first + 1, min(first + self._longest, self.count) + 1):
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
