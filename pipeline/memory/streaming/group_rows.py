"""Take more rows at a time in the regions of a path: as far as there is room, or at least so many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .partitioner import Partition, Partitioner, StreamedSteps
from .region import Region, region

#: most rows at a time: longer loops cost less overhead, and weights are read less often
MOST_ROWS = 16


def coarser(paths: Partitioner, path: Partition) -> Partition:
    """Take as many rows at a time as there is room for."""
    grouped = [_grouped(paths, each, _groups(paths, each), path.nbytes) or each for each in path.regions]
    return paths.path_of(grouped, path.reached)


def in_groups(paths: Partitioner, path: Partition, fewest: int) -> Partition | None:
    """Take `fewest` rows at a time or the next number that saves time, at any peak; None if a region has none."""
    regions: list[StreamedSteps] = []
    for each in path.regions:
        groups = sorted(_groups(paths, each)) if each.group < fewest else []
        found = _grouped(paths, each, [group for group in groups if group >= fewest], math.inf) if groups else each
        if found is None:
            return None
        regions.append(found)
    return paths.path_of(regions, path.reached)


def row_groups(extents: Sequence[int]) -> list[int]:
    """List the numbers of rows that cost less time than single ones, cheapest first, for stages of so many rows.

    To begin a group is taken to cost half a row of it, rows of a last group that overlaps are computed again, and a
    multiple of four fits vectors and tiles.
    """

    def cost(group: int) -> int:
        return sum(-(-extent // group) for extent in extents) * (2 * group + 1) * (16 if group % 4 == 0 else 17)

    cheaper = [group for group in range(2, MOST_ROWS + 1) if cost(group) < cost(1)]
    return sorted(cheaper, key=lambda group: (cost(group), -group))


def _grouped(paths: Partitioner, streamed: StreamedSteps, groups: Sequence[int], most: float) -> StreamedSteps | None:
    """Return the region by the first of `groups` rows that runs within `most` bytes."""
    around = paths.bytes_around(streamed.first, streamed.last + 1)
    for group in groups:
        found = _region(paths, streamed, group)
        if found is not None and around + found.nbytes - found.saved <= most:
            return replace(streamed, group=group, nbytes=around + found.nbytes - found.saved)
    return None


def _groups(paths: Partitioner, streamed: StreamedSteps) -> list[int]:
    rows = _region(paths, streamed, 1)
    return [] if rows is None else row_groups([stage.extent for stage in rows.stages])


def _region(paths: Partitioner, streamed: StreamedSteps, group: int) -> Region | None:
    first, last, axis = streamed.first, streamed.last, streamed.axis
    return region(paths.program, paths.splits, first, last, axis, group, paths.alignment, streamed.in_place)
