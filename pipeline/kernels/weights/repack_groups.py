"""Repack integer weights for products added up in int16 by groups, with the proof: how each filter is grouped.

    weight[f, …, c, …] ─► per `width` filters: … runs of c by filter: sixteen int8; the starts of the sums, int32;
                          and the number of a grouping for each unit and filter

A unit is `size` runs of a filter, in halves. Its products of each of eight places are summed in int16 group by group,
so the weights decide how many fit. The fewest groups that any values fit into are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from ...tir.operators.runs import RUN
from .repack_sums import RepackSums

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
class RepackGroups(RepackSums):
    """Repack parameter `parameter` by units: a group of a run for each place along the dimensions `unrolled`.

    Units of a block's filters follow each other.
    """

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        blocks, size = super().shape(shape)
        return (blocks, size + self.units * self.width)

    @property
    def size(self) -> int:
        """Return the runs of a unit."""
        return self._counts["u"] * self.group // RUN

    @property
    def units(self) -> int:
        """Return the units of a filter."""
        return self._counts["r"] * self.steps

    @property
    def numbers(self) -> int:
        """Return the place of the groupings' numbers in a block."""
        return self.starts + 4 * self.width

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack int8 weights; returns int8."""
        packed = super().apply(array)
        numbers = self._grouped(packed[:, : self.starts])
        return np.concatenate([packed, numbers.reshape(len(packed), -1)], axis=1)

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
