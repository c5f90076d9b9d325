"""Enumerate the graphs that passes lead to, breadth-first, each by its shortest prefix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...passes.base import Pass
from .candidates import clean
from .evaluation import Evaluator

Prefix = tuple[Pass, ...]


class Edge(NamedTuple):
    """A pass on the state of a number; `after` is None where it fails, and for a new state beyond the limit (`beyond`)."""

    before: int
    each: Pass
    after: int | None
    beyond: bool = False


class Closure:
    """Hold the shortest prefixes of the states found so far, `most` at most; the first is the imported graph."""

    def __init__(self, evaluator: Evaluator, passes: Sequence[Pass], most: int):
        start = evaluator.key(())
        assert start is not None
        self.prefixes: list[Prefix] = [()]
        self._evaluator, self._passes, self._most = evaluator, passes, most
        self._numbers = {start: 0}

    def edges(self) -> Iterator[Edge]:
        """Yield every pass on every state, and add the states it leads to, layer by layer."""
        done = 0
        while done < len(self.prefixes):
            layer, done = range(done, len(self.prefixes)), len(self.prefixes)
            # a lossy pass once is loss enough, and each time would be another graph
            steps = [
                (number, each) for number in layer for each in self._passes
                if not (each.lossy and each in self.prefixes[number])
            ]  # fmt: skip
            longer = [(*self.prefixes[number], each) for number, each in steps]
            for (number, each), prefix, key in zip(steps, longer, self._evaluator.keys(map(clean, longer))):
                yield Edge(number, each, *self._reach(prefix, key))

    def _reach(self, prefix: Prefix, key: int | None) -> tuple[int | None, bool]:
        if key is None:
            return None, False
        if key not in self._numbers:
            if len(self.prefixes) == self._most:
                return None, True
            self._numbers[key] = len(self.prefixes)
            self.prefixes.append(prefix)
        return self._numbers[key], False
