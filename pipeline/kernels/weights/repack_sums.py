"""Repack integer weights for instructions that sum products: blocks of filters, each in the order of its instruction.

weight[f, …, run] ─► per `width` filters: elements in an order such as "r k/4 f k%4"; and the starts of their sums, int32

That order holds, for each place of the others and each four of a run, four neighbours of each filter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

import numpy as np

from .repack import Repack

#: a digit of an order: an axis, its modulus, and the step of its values
_DIGIT = re.compile(r"([frk])(?:%(\d+))?(?:/(\d+))?")


@dataclass(frozen=True)
class RepackSums(Repack):
    """Repack parameter `parameter` of shape `extents` by filters along `dimension`, `width` a block, in `order`.

    Digits of an order are axes: `f` counts the filters of a block, `k` the values of a run along the dimensions `run`,
    `r` all others; `k%8/2` is k % 8 // 2. The last one is the fastest. Runs end with zeros up to whole groups of `group`. Of
    values x, sums are of x - `zero`: their starts follow a block, unless that is None. If the second half of each
    `halves` values is complemented (see tir/operators/quads.py), starts undo that.
    """

    order: str = ""
    run: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()
    group: int = 1
    zero: int | None = None
    halves: int = 0

    def index_map(self, *indices):
        """Return the new indices of an element."""
        at = {axis: self.linear(indices, places) for axis, places in self._axes.items()}
        block, at["f"] = at["f"] // self.width, at["f"] % self.width
        place = 0
        for axis, step, count in self._digits():
            digit = at[axis] // step
            place = place * count + (digit if step * count == self._counts[axis] else digit % count)
        return [block, place]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        assert shape == self.extents
        return shape[self.dimension] // self.width, self.starts + (0 if self.zero is None else 4 * self.width)

    def linear(self, indices, places: tuple[int, ...]):
        """Number an element among its neighbours along `places`."""
        linear = 0
        for place in places:
            linear = linear * self.extents[place] + indices[place]
        return linear

    @property
    def rest(self) -> tuple[int, ...]:
        """List the dimensions of `r`."""
        taken = {self.dimension, *self.run}
        return tuple(place for place in range(len(self.extents)) if place not in taken)

    @property
    def steps(self) -> int:
        """Count the groups of a run."""
        return -(-prod(self.extents[place] for place in self.run) // self.group)

    @property
    def starts(self) -> int:
        """Count the elements of a block: the place of the starts."""
        return prod(self._counts.values())

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack weights: int8, or of any dtype without starts."""
        moved = array.transpose([place for places in self._axes.values() for place in places])
        moved = moved.reshape(array.shape[self.dimension], self._counts["r"], -1)
        moved = np.pad(moved, ((0, 0), (0, 0), (0, self._counts["k"] - moved.shape[2])))
        digits = [("f", self.width, len(moved) // self.width), *self._digits()]
        nested = sorted(range(len(digits)), key=lambda n: (list(self._axes).index(digits[n][0]), -digits[n][1]))
        split = moved.reshape([digits[n][2] for n in nested])
        packed = split.transpose(np.argsort(nested)).reshape(len(moved) // self.width, -1)
        if self.zero is not None:
            wide = moved.astype(np.int64)
            starts = -wide.sum((1, 2)) * self.zero
            if self.halves:
                starts -= wide[..., np.arange(wide.shape[2]) % self.halves >= self.halves // 2].sum((1, 2))
            ends = starts.astype("<i4").reshape(-1, self.width).view(np.int8)
            packed = np.concatenate([packed, ends], axis=1)
        return np.ascontiguousarray(packed).reshape(self.shape(array.shape))

    @property
    def _axes(self) -> dict[str, tuple[int, ...]]:
        return {"f": (self.dimension,), "r": self.rest, "k": self.run}

    @property
    def _counts(self) -> dict[str, int]:
        """Count the values of each axis in a block."""
        rest = prod(self.extents[place] for place in self.rest)
        return {"f": self.width, "r": rest, "k": self.steps * self.group}

    def _digits(self) -> list[tuple[str, int, int]]:
        """List the axis, the step and the count of each digit."""
        return [
            (axis, int(step or 1), int(modulus or self._counts[axis]) // int(step or 1))
            for axis, modulus, step in _DIGIT.findall(self.order)
        ]
