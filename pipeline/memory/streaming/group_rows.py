"""Stream more rows at a time in the regions of a path, as far as there is room.

Each tick reads again what its rows do not follow: weights, or the picture where the rows are channels. Beyond a near
cache that takes time, so it decides on the number of rows, and between rows and channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ...program import Rows
from .partitioner import Partition, Partitioner, StreamedSteps
from .region import Region, region
from .stage import Stage

#: most rows at a time: longer loops cost less overhead, and weights are read less often; a channel is a short row
MOST_ROWS, MOST_CHANNELS = 16, 64
#: bytes that a near cache keeps from tick to tick, and iterations in the time of reading a byte beyond
NEAR, SLOW = 1 << 18, 2
#: pace of rows that each need one row of the operand
_ALONE = Fraction(1), 0, 1


def coarser(paths: Partitioner, path: Partition) -> Partition:
    """Stream as many rows at a time as memory allows, along the fastest axis."""
    return paths.path_of([_fastest(paths, each, path.nbytes) for each in path.regions], path.reached)


def row_groups(extents: Sequence[int], again: Sequence[int] = ()) -> list[int]:
    """List the numbers of rows that are faster than single ones, fastest first.

    To begin a group is taken to cost half a row of it, and so many half rows `again` for what each reads again. Rows of
    a last group that overlaps are computed again, and a multiple of four fits vectors and tiles.
    """

    def cost(group: int) -> int:
        own = (2 * group + 1) * (16 if group % 4 == 0 else 17)
        return sum(
            -(-extent // group) * (own + 16 * more) for extent, more in zip(extents, again or [0] * len(extents))
        )

    cheaper = [group for group in range(2, MOST_ROWS + 1) if cost(group) < cost(1)]
    return sorted(cheaper, key=lambda group: (cost(group), -group))


def _fit_groups(
    paths: Partitioner, streamed: StreamedSteps, groups: Sequence[int], most: float
) -> StreamedSteps | None:
    """Return the region by the first of `groups` rows that runs within `most` bytes."""
    around = paths.bytes_around(streamed.first, streamed.last + 1)
    for group in groups:
        found = _region(paths, streamed, group)
        if found is not None and (nbytes := around + found.nbytes(paths.program, paths.alignment)) <= most:
            return replace(streamed, group=group, nbytes=nbytes)
    return None


def _fastest(paths: Partitioner, streamed: StreamedSteps, most: int) -> StreamedSteps:
    """Return a region by the rows, or else channels, that take least time within `most` bytes."""
    rows = _region(paths, streamed, 1)
    if rows is None:
        return streamed
    best = _fit_groups(paths, streamed, _groups(paths, streamed), most) or streamed
    if not any(_again(paths, rows.stages)) or not all(_is_pointwise(paths, stage) for stage in rows.stages):
        return best
    shape = paths.program.tensors[paths.program.steps[streamed.first].writes[0]].shape
    for axis in range(1, len(shape) - 1):
        other = replace(streamed, axis=axis, group=1)
        along = _region(paths, other, 1) if axis != streamed.axis else None
        if along is None:
            continue
        common = math.gcd(*(stage.extent for stage in along.stages))
        even = [group for group in range(min(common, MOST_CHANNELS), 1, -1) if common % group == 0]
        found = _fit_groups(paths, other, even, most)
        if found is not None and _time(paths, along.stages, found.group) < _time(paths, rows.stages, best.group):
            best, rows = found, along
    return best


def _groups(paths: Partitioner, streamed: StreamedSteps) -> list[int]:
    rows = _region(paths, streamed, 1)
    if rows is None:
        return []
    half_rows = [
        math.ceil(2 * SLOW * nbytes * stage.extent / max(1, _work(paths, stage)))
        for stage, nbytes in zip(rows.stages, _again(paths, rows.stages))
    ]
    return row_groups([stage.extent for stage in rows.stages], half_rows)


def _time(paths: Partitioner, stages: Sequence[Stage], group: int) -> float:
    """Estimate the time of a region in iterations, as `row_groups` does."""
    return sum(
        -(-stage.extent // group) * ((group + 0.5) * _work(paths, stage) / stage.extent + SLOW * nbytes)
        for stage, nbytes in zip(stages, _again(paths, stages))
    )


def _work(paths: Partitioner, stage: Stage) -> int:
    return paths.splits[paths.program.steps[stage.step].kernel].work


def _again(paths: Partitioner, stages: Sequence[Stage]) -> list[int]:
    """Count the bytes each stage reads again at every tick; none if a near cache keeps those of all."""
    found = []
    for stage in stages:
        step = paths.program.steps[stage.step]
        rows = _rows(paths, stage)
        # a sum takes its operand once, and its result each time
        taken = step.writes if rows is None else [t for n, t in enumerate(step.reads) if rows.follows(n) is None]
        found.append(sum(paths.program.tensors[tensor].nbytes for tensor in taken))
    return found if sum(found) > NEAR else [0] * len(found)


def _is_pointwise(paths: Partitioner, stage: Stage) -> bool:
    """Return whether each row of a stage needs one row, the same, of its operand."""
    rows = _rows(paths, stage)
    return rows is None or all(follows.pace(1) == _ALONE for _, follows in rows.operands)


def _rows(paths: Partitioner, stage: Stage) -> Rows | None:
    """Return how a stage's rows follow its operands'; None for a sum."""
    splits = paths.splits[paths.program.steps[stage.step].kernel]
    return None if stage.operand is not None else next(rows for rows in splits.rows if rows.axis == stage.axis)


def _region(paths: Partitioner, streamed: StreamedSteps, group: int) -> Region | None:
    first, last, axis = streamed.first, streamed.last, streamed.axis
    return region(paths.program, paths.splits, first, last, axis, group, streamed.in_place)
