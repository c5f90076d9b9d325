"""Follow ranges of a reshaped value back through its reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .slices import Range, along


def ranges_before_reshape(
    before: Sequence[int], after: Sequence[int], ranges: tuple[Range, ...]
) -> tuple[Range, ...] | None:
    """Return the ranges before a reshape; None if one is not a single stretch of memory, or a box."""
    found: list[Range] = []
    for inner, outer in common_factors(before, after):
        if any(each.axis in outer for each in ranges):
            box = _box(
                [along(ranges, axis, after[axis]) for axis in outer], [after[axis] for axis in outer], inner, before
            )
            if box is None:
                return None
            found += box
    return tuple(found)


def common_factors(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the least groups of axes, before and after a reshape, of as many elements each."""
    groups: list[tuple[list[int], list[int]]] = []
    one = other = 0
    while one < len(before) or other < len(after):
        inner, outer = [one] if one < len(before) else [], [other] if other < len(after) else []
        one, other = one + len(inner), other + len(outer)
        while (left := math.prod(before[axis] for axis in inner)) != (
            right := math.prod(after[axis] for axis in outer)
        ):
            if left < right:
                inner.append(one)
                one += 1
            else:
                outer.append(other)
                other += 1
        groups.append((inner, outer))
    return groups


def _box(
    ranges: Sequence[Range], extents: Sequence[int], axes: Sequence[int], before: Sequence[int]
) -> list[Range] | None:
    """Return the ranges of a group of axes before a reshape, from those of the same elements after it."""
    long = [axis for axis in axes if before[axis] > 1]
    start, count, single = 0, 1, True
    for each, extent in zip(ranges, extents):
        if each.step > 1 and len(long) == 1 and extent == before[long[0]]:
            return [replace(each, axis=long[0])]
        if (not single and each.extent < extent) or each.step > 1:
            return None  # there are gaps
        start, count, single = start * extent + each.begin, count * each.extent, single and each.extent == 1
    found: list[Range] = []
    inner = math.prod(before[axis] for axis in axes)
    for axis in axes:
        inner //= before[axis]
        first, start = divmod(start, inner)
        if start + count > inner:  # more than one row of the axes further in
            if start or count % inner:
                return None
            return [*found, Range(axis, first, first + count // inner)]
        found.append(Range(axis, first, first + 1, drop=before[axis] > 1))
    return found
