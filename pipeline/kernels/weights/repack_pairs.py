"""Repack integer weights for sums of two products: neighbours of a run side by side, filters in between.

    weight[f, …, run] ─► weight[f / width, …, run / 2, f % width, 2]      an odd run ends with a zero
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from .repack import Repack


@dataclass(frozen=True)
class RepackPairs(Repack):
    """Repack parameter `parameter` of shape `extents` by filters along `dimension`, `width` a block.

    A run walks the dimensions `run`, the last one fastest.
    """

    run: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()

    def index_map(self, *indices):
        """Return the new indices of an element."""
        f = indices[self.dimension]
        at = reduce(lambda linear, place: linear * self.extents[place] + indices[place], self.run, 0)
        rest = reduce(lambda linear, place: linear * self.extents[place] + indices[place], self.rest, 0)
        return [f // self.width, rest * self.pairs + at // 2, f % self.width * 2 + at % 2]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        assert shape == self.extents
        rest = prod(self.extents[place] for place in self.rest)
        return (shape[self.dimension] // self.width, rest * self.pairs, 2 * self.width)

    @property
    def pairs(self) -> int:
        """Count the pairs of a run."""
        return -(-prod(self.extents[place] for place in self.run) // 2)

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack weights, of any dtype."""
        moved = array.transpose(self.dimension, *self.rest, *self.run)
        moved = moved.reshape(array.shape[self.dimension], -1, prod(self.extents[place] for place in self.run))
        moved = np.pad(moved, ((0, 0), (0, 0), (0, 2 * self.pairs - moved.shape[2])))
        split = moved.reshape(-1, self.width, moved.shape[1], self.pairs, 2).transpose(0, 2, 3, 1, 4)
        return np.ascontiguousarray(split).reshape(self.shape(array.shape))

    @property
    def rest(self) -> tuple[int, ...]:
        """List the other dimensions."""
        return tuple(place for place in range(len(self.extents)) if place != self.dimension and place not in self.run)
