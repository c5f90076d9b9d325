"""Divide a graph of computations into parts of one result and of bounded size.

    a ─► b ─┬─► c ─┬─► d │ e ─► f        at the bar one value crosses: it is the result of the first part
            └──────┘     │
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Computations:
    """Values 0 … n - 1 in order of computation: `reads[i]` are the earlier ones that value i reads, `nbytes[i]` is its
    size, and `outputs` are read by others."""

    reads: tuple[tuple[int, ...], ...]
    nbytes: tuple[int, ...]
    outputs: frozenset[int]

    def readers(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.reads]
        for reader, values in enumerate(self.reads):
            for value in values:
                found[value].append(reader)
        return found


def parts(graph: Computations, size: Callable[[Sequence[int], Collection[int]], int], limit: int) -> list[list[int]]:
    """The values of each part, its result last; every part reads only results of earlier ones.

    `size(values, kept)` is the size of values together, of which those in `kept` are computed once. A part is at most
    `limit` large unless it is a single value. Cuts are made where few bytes cross; a value that two parts need is the
    result of a part of its own.
    """
    kept = set(graph.outputs)
    count, start, last = len(graph.reads), 0, _last_readers(graph)
    while start < count:
        stop = start + _longest(
            count - start,
            lambda length: size(range(start, start + length), _crossing(last, start, start + length)) <= limit,
        )
        if stop < count:
            stop = _best_cut(graph, last, start, stop)
        kept.update(_crossing(last, start, stop))
        start = stop
    return _of_one_result(graph, kept)


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """A length from 1 to `most` that fits, if 1 does, found in few steps; the longest, where all shorter ones fit."""
    low, step = 1, 1
    while low + step <= most and fits(low + step):
        low, step = low + step, 2 * step
    while step > 1:
        step //= 2
        if low + step <= most and fits(low + step):
            low += step
    return low


def _last_readers(graph: Computations) -> list[int]:
    """The last reader of each value, beyond the end for outputs."""
    beyond = len(graph.reads)
    readers = graph.readers()
    return [beyond if value in graph.outputs else max(each, default=value) for value, each in enumerate(readers)]


def _crossing(last: Sequence[int], start: int, stop: int) -> frozenset[int]:
    """The values from `start` up to `stop` that are read from there on."""
    return frozenset(value for value in range(start, stop) if last[value] >= stop)


def _best_cut(graph: Computations, last: Sequence[int], start: int, stop: int) -> int:
    """Of the later half of the places, the one that fewest bytes cross; of equal ones, the last."""

    def crossing(cut: int) -> int:
        return sum(graph.nbytes[value] for value in _crossing(last, start, cut))

    return min(range(stop, start + (stop - start) // 2, -1), key=crossing)


def _of_one_result(graph: Computations, kept: set[int]) -> list[list[int]]:
    """A part for each value of `kept`, and for each that two of the parts would share."""
    found: dict[int, list[int]] = {}
    part: dict[int, int] = {}
    readers = graph.readers()
    for value in reversed(range(len(graph.reads))):
        wanted = {part[reader] for reader in readers[value] if reader in part}
        if not wanted and value not in graph.outputs:
            continue  # nobody needs it
        part[value] = wanted.pop() if len(wanted) == 1 and value not in kept else value
        found.setdefault(part[value], []).insert(0, value)
    return [found[result] for result in sorted(found)]
