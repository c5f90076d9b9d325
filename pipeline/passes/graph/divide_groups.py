"""Divide a dataflow graph into single-result parts of bounded size.

a ─► b ─┬─► c ─┬─► d │ e ─► f        at the bar one value crosses: it is the result of the first part
        └──────┘     │
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Computations:
    """Dataflow graph of values 0 … n - 1, topologically ordered.

    `reads[i]` are the earlier values that value i reads, `nbytes[i]` is its size; `outputs` are read from outside.
    """

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
    """Return the values of each part, its result last; a part reads only results of earlier parts.

    `size(values, kept)` is the size of `values` in one part, each of `kept` computed once. A part is at most `limit`
    large unless it is a single value. Cuts are made where few bytes cross. A value needed by two parts becomes the
    result of a part of its own.
    """
    kept = set(graph.outputs)
    count, start, last = len(graph.reads), 0, _last_readers(graph)
    while start < count:

        def fits(length: int, start: int = start) -> bool:
            return size(range(start, start + length), _crossing(last, start, start + length)) <= limit

        stop = start + _longest(count - start, fits)
        if stop < count:
            stop = _best_cut(graph, last, start, stop)
        kept.update(_crossing(last, start, stop))
        start = stop
    return _parts_of_one_result(graph, kept)


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """Find a length up to `most` that fits, by exponential then binary search.

    Assumes that 1 fits. Returns the longest length if `fits` is monotone.
    """
    low, step = 1, 1
    while low + step <= most and fits(low + step):
        low, step = low + step, 2 * step
    while step > 1:
        step //= 2
        if low + step <= most and fits(low + step):
            low += step
    return low


def _last_readers(graph: Computations) -> list[int]:
    """Return the last reader of each value; one past the end for outputs."""
    beyond = len(graph.reads)
    readers = graph.readers()
    return [beyond if value in graph.outputs else max(each, default=value) for value, each in enumerate(readers)]


def _crossing(last: Sequence[int], start: int, stop: int) -> frozenset[int]:
    """Collect the values of `start` … `stop` - 1 read at or after `stop`."""
    return frozenset(value for value in range(start, stop) if last[value] >= stop)


def _best_cut(graph: Computations, last: Sequence[int], start: int, stop: int) -> int:
    """Choose the cut with fewest crossing bytes in the later half; the last of equals."""

    def crossing(cut: int) -> int:
        return sum(graph.nbytes[value] for value in _crossing(last, start, cut))

    return min(range(stop, start + (stop - start) // 2, -1), key=crossing)


def _parts_of_one_result(graph: Computations, kept: set[int]) -> list[list[int]]:
    """Form a part per value in `kept`, and per value shared by two parts."""
    found: dict[int, list[int]] = {}
    part: dict[int, int] = {}
    readers = graph.readers()
    for value in reversed(range(len(graph.reads))):
        wanted = {part[reader] for reader in readers[value] if reader in part}
        if not wanted and value not in graph.outputs:
            continue  # dead
        part[value] = wanted.pop() if len(wanted) == 1 and value not in kept else value
        found.setdefault(part[value], []).insert(0, value)
    return [found[result] for result in sorted(found)]
