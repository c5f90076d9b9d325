"""Build the choices of NonZero and Compress, up to a bound, with operators of static results.

flags   0 1 1 0 1        counted   0 1 2 2 3  ─► written at 0 … bound − 1, all others behind:  1 2 4 0 0, and 3 of them
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..node_builder import NodeBuilder


class Chosen(NamedTuple):
    """Result by name, open along `axis`: its `length`, int64 [1], is at most that of its `shape`; empty for a fixed one.

    With `zero` the elements behind it are 0.
    """

    name: str
    axis: int
    length: str
    shape: tuple[int, ...]
    dtype: np.dtype = np.dtype(np.int64)
    zero: bool = True


def count_chosen(build: NodeBuilder, flags: str, count: int) -> tuple[str, str]:
    """Build the true ones among `count` flags up to each, int32 [`count`], and all of them, int64 [1]."""
    axis = build.constant(np.asarray(0, np.int32))
    counted = build.node("CumSum", build.cast(flags, np.int32), axis)
    last = build.node("Slice", counted, build.integers(count - 1), build.integers(count), build.integers(0))
    return counted, build.cast(last, np.int64)


def choose_places(build: NodeBuilder, flags: str, count: int, bound: int) -> tuple[str, str]:
    """Build the places of the true ones among `count` flags, int64 [`bound`], and their number, int64 [1]."""
    counted, length = count_chosen(build, flags, count)
    one, behind = (build.constant(np.asarray(value, np.int32)) for value in (1, bound))
    slots = build.node("Where", flags, build.node("Sub", counted, one), behind)
    if bound < count:
        length, slots = build.node("Min", length, build.integers(bound)), build.node("Min", slots, behind)
    empty, places = (build.constant(each.astype(np.int32)) for each in (np.zeros(bound + 1), np.arange(count)))
    written = build.node("ScatterElements", empty, slots, places, axis=0)
    kept = build.node("Slice", written, build.integers(0), build.integers(bound), build.integers(0))
    return build.cast(kept, np.int64), length


def coordinates(build: NodeBuilder, places: str, shape: tuple[int, ...]) -> list[str]:
    """Build the index along each axis of places in a tensor, in the order of memory."""
    found = []
    for axis, extent in enumerate(shape):
        stride, along = int(np.prod(shape[axis + 1 :], dtype=np.int64)), places
        if stride > 1:
            along = build.node("Div", along, build.integers(stride))
        if axis:
            along = build.node("Mod", along, build.integers(extent))
        found.append(along)
    return found


def at_places(
    build: NodeBuilder, places: str, length: str, shape: tuple[int, ...], bound: int, zero: bool = True
) -> Chosen:
    """Build the indices of places in a tensor as NonZero gives them, int64 [rank, places]."""
    rows = [build.node("Unsqueeze", each, build.integers(0)) for each in coordinates(build, places, shape)]
    joined = build.node("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]
    return Chosen(joined, 1, length, (len(shape), bound), zero=zero)
