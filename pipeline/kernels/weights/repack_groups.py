"""Repack integer weights for products added up in int16 by groups, with the proof: how each filter is grouped.

    weight[f, …, c, …] ─► per `width` filters: … runs of c by filter: sixteen int8; the starts of the sums, int32;
                          and the number of a grouping for each unit and filter

A unit is `size` runs of a filter, in halves. Its products of each of eight places are summed in int16 group by group,
so the weights decide how many fit. The fewest groups that any values fit into are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from ...tir.operators.runs import RUN
from .repack_runs import RepackRuns

#: halves of runs in a group, on average, by grouping; each half alone at last, as any weights allow
_SIZES = (4.5, 3.6, 3, 2, 1)


def groupings(halves: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """List the groupings of a unit, the fewest groups first: halves by number.

    Halves go around. An even number of groups shifts each time, so that one column's weights, often the largest, part.
    """
    found = []
    for count in sorted({ceil(halves / size) for size in _SIZES}):
        groups: list[list[int]] = [[] for _ in range(count)]
        for half in range(halves):
            groups[(half + (half // count if count % 2 == 0 else 0)) % count].append(half)
        found.append(tuple(map(tuple, groups)))
    return tuple(found)


@dataclass(frozen=True)
class RepackGroups(RepackRuns):
    """Repack parameter `parameter` of shape `extents` by units: `runs` along `channels` of all of the dimensions `unrolled`.

    Units of a block's filters follow each other. Of values x, sums are of x - `zero`.
    """

    unrolled: tuple[int, ...] = ()
    runs: int = 1

    def index_map(self, *indices):
        """Return the new indices of an element."""
        f, c = indices[self.dimension], indices[self.channels]
        unit = self.linear(indices, self.looped) * (self.extents[self.channels] // RUN // self.runs) + c // (
            RUN * self.runs
        )
        run = self.linear(indices, self.unrolled) * self.runs + c // RUN % self.runs
        return [f // self.width, ((unit * self.width + f % self.width) * self.size + run) * RUN + c % RUN]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        assert shape == self.extents
        return (shape[self.dimension] // self.width, self.numbers + self.units * self.width)

    @property
    def size(self) -> int:
        """Return the runs of a unit."""
        return prod(self.extents[place] for place in self.unrolled) * self.runs

    @property
    def units(self) -> int:
        """Return the units of a filter."""
        return prod(self.extents) // self.extents[self.dimension] // (self.size * RUN)

    @property
    def numbers(self) -> int:
        """Return the place of the groupings' numbers in a block."""
        return self.starts + 4 * self.width

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack int8 weights; returns int8."""
        single = [place for place in self.others if self.extents[place] == 1 and place not in self.unrolled]
        moved = array.transpose(self.dimension, *self.looped, *single, self.channels, *self.unrolled)
        parts = moved.reshape(len(moved), -1, self.runs, RUN, self.size // self.runs).transpose(0, 1, 4, 2, 3)
        units = parts.reshape(-1, self.width, self.units, self.size * RUN)
        blocks = units.transpose(0, 2, 1, 3)
        starts = -units.astype(np.int64).sum((2, 3)) * self.zero
        ends = starts.astype(np.int32).astype("<i4").view(np.int8)
        return np.concatenate(
            [blocks.reshape(len(ends), -1), ends, self._grouped(blocks).reshape(len(ends), -1)], axis=1
        )

    def _grouped(self, blocks: np.ndarray) -> np.ndarray:
        """Return the number of the first grouping that any values fit into, for each unit."""
        halves = blocks.reshape(-1, 2 * self.size, RUN // 2).astype(np.int32)
        low, high = (np.where(halves < 0, one * halves, -other * halves) for one, other in ((127, 128), (-128, -127)))
        found = np.full(len(halves), -1, np.int8)
        for number, groups in enumerate(groupings(2 * self.size)):
            sums = [each[:, list(group)].sum(1) for group in groups for each in (low, high)]
            fits = np.logical_and.reduce([((each >= -(1 << 15)) & (each < 1 << 15)).all(1) for each in sums])
            found[(found < 0) & fits] = number
        return found

    @property
    def looped(self) -> tuple[int, ...]:
        """List the other dimensions with more than one element."""
        return tuple(place for place in self.others if place not in self.unrolled and self.extents[place] > 1)
