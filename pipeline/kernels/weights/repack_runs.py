"""Repack integer weights for sums along runs of sixteen neighbours, with the sums of zero points.

    weight[f, …, c, …] ─► per `width` filters: … runs of c: sixteen int8 of each filter; and the starts of their sums, int32

The first half of a run is added, the second subtracted: see tir/operators/runs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from ...tir.operators.runs import RUN
from .repack import Repack


@dataclass(frozen=True)
class RepackRuns(Repack):
    """Repack parameter `parameter` of shape `extents` by filters along `dimension`, `width` a block, and runs along `channels`.

    Of values x, sums are of x - `zero`. The complements of the second half of a run are multiplied.
    """

    channels: int = 0
    zero: int = 0
    extents: tuple[int, ...] = ()

    def index_map(self, *indices):
        """Return the new indices of an element."""
        f, c = indices[self.dimension], indices[self.channels]
        linear = self.linear(indices, self.others) * (self.extents[self.channels] // RUN) + c // RUN
        return [f // self.width, (linear * self.width + f % self.width) * RUN + c % RUN]

    def linear(self, indices, places: Iterable[int]):
        """Return the number of an element among those that differ along `places`."""
        linear = 0
        for place in places:
            linear = linear * self.extents[place] + indices[place]
        return linear

    @property
    def others(self) -> tuple[int, ...]:
        """List the dimensions besides filters and channels."""
        return tuple(place for place in range(len(self.extents)) if place not in (self.dimension, self.channels))

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        assert shape == self.extents
        return (shape[self.dimension] // self.width, self.starts + 4 * self.width)

    @property
    def starts(self) -> int:
        """Return the place of the starts in a block."""
        return prod(self.extents) // self.extents[self.dimension] * self.width

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack int8 weights; returns int8."""
        moved = np.moveaxis(array, (self.dimension, self.channels), (0, -1))
        wide = moved.astype(np.int64).reshape(len(moved), -1, 2, RUN // 2)
        starts = -wide.sum((1, 2, 3)) * self.zero - wide[:, :, 1].sum((1, 2))
        blocks = moved.reshape(-1, self.width, moved[0].size // RUN, RUN).transpose(0, 2, 1, 3)
        ends = starts.astype(np.int32).astype("<i4").reshape(-1, self.width).view(np.int8)
        return np.ascontiguousarray(np.concatenate([blocks.reshape(len(ends), -1), ends], axis=1))
