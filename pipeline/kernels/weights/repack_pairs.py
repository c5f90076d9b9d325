"""Repack integer weights for sums of 2, 4 or 16 products: neighbours of a run side by side, filters in between.

    weight[f, …, run] ─► weight[f / width, …, run / group, f % width, group]      a run that is not whole groups ends with zeros

Groups of four and more end with a row more: the start of each filter's sum, int32. A group of sixteen is four rows. If fours are
`spread`, the inner two change places: even and odd bytes, as one instruction widens them, are neighbours then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from .repack import Repack

_FOUR = 4


@dataclass(frozen=True)
class RepackPairs(Repack):
    """Repack parameter `parameter` of shape `extents` by filters along `dimension`, `width` a block.

    A run walks the dimensions `run`, the last one fastest. Starts are less the weights' sum by `zero`.
    """

    run: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()
    group: int = 2
    zero: int = 0
    spread: bool = False

    def index_map(self, *indices):
        """Return the new indices of an element."""
        f = indices[self.dimension]
        at = reduce(lambda linear, place: linear * self.extents[place] + indices[place], self.run, 0)
        rest = reduce(lambda linear, place: linear * self.extents[place] + indices[place], self.rest, 0)
        inner = at % self.group
        if self.spread:
            inner = inner * 2 - inner // 2 * 3
        row, place = rest * self.steps + at // self.group, f % self.width * self.group + inner
        if self.group <= _FOUR:
            return [f // self.width, row, place]
        return [f // self.width, row * self.lines + place // (_FOUR * self.width), place % (_FOUR * self.width)]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        assert shape == self.extents
        rest = prod(self.extents[place] for place in self.rest)
        rows = rest * self.steps * self.lines + (self.group >= _FOUR)
        return (shape[self.dimension] // self.width, rows, min(self.group, _FOUR) * self.width)

    @property
    def lines(self) -> int:
        """Count the rows of a group of each filter."""
        return max(self.group // _FOUR, 1)

    @property
    def steps(self) -> int:
        """Count the groups of a run."""
        return -(-prod(self.extents[place] for place in self.run) // self.group)

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack weights, of any dtype."""
        moved = array.transpose(self.dimension, *self.rest, *self.run)
        moved = moved.reshape(array.shape[self.dimension], -1, prod(self.extents[place] for place in self.run))
        moved = np.pad(moved, ((0, 0), (0, 0), (0, self.group * self.steps - moved.shape[2])))
        split = moved.reshape(-1, self.width, moved.shape[1], self.steps, self.group).transpose(0, 2, 3, 1, 4)
        if self.spread:
            split = split[..., [0, 2, 1, 3]]
        packed = np.ascontiguousarray(split).reshape(split.shape[0], -1, min(self.group, _FOUR) * self.width)
        if self.group < _FOUR:
            return packed
        starts = -moved.astype(np.int64).sum((1, 2)) * self.zero
        ends = starts.astype("<i4").reshape(-1, 1, self.width).view(np.int8)
        return np.concatenate([packed, ends], axis=1)

    @property
    def rest(self) -> tuple[int, ...]:
        """List the other dimensions."""
        return tuple(place for place in range(len(self.extents)) if place != self.dimension and place not in self.run)
