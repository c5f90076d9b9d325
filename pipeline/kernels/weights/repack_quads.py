"""Repack integer weights for sums of four products, with the sums of zero points.

    weight[f, …, c, …] ─► per `width` filters: … quads of c: eight filters: two int8 of each, then the two others
                          and the starts of their sums, int32

A quad joins the values c, c + 1 with c + `chunk` / 2, + 1: of a chunk, the first half is added, the second subtracted.
For dot products, a quad is four neighbours, all added.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from .repack import Repack

#: filters side by side, and bytes of their quads
_EIGHT, _QUADS = 8, 32


@dataclass(frozen=True)
class RepackQuads(Repack):
    """Repack parameter `parameter` of shape `extents` by filters along `dimension`, `width` a block, and quads along `channels`.

    Of values x, sums are of x - `zero`. The complements of the second half of a chunk are multiplied (see tir/operators/quads.py).
    """

    channels: int = 0
    chunk: int = 4
    zero: int = 0
    extents: tuple[int, ...] = ()
    dots: bool = False

    def index_map(self, *indices):
        """Return the new indices of an element."""
        shape = self.extents
        f, c = indices[self.dimension], indices[self.channels]
        lane = f % self.width
        half = self.chunk // 2
        if self.dots:
            quad, within = c // 4, lane % _EIGHT * 4 + c % 4
        else:
            quad = c // self.chunk * (self.chunk // 4) + c % half // 2
            within = c % self.chunk // half * (_QUADS // 2) + lane % _EIGHT * 2 + c % 2
        linear = 0
        for place, index in enumerate(indices):
            if place not in (self.dimension, self.channels):
                linear = linear * shape[place] + index
        linear = linear * (self._padded(shape[self.channels]) // 4) + quad
        at = (linear * (self.width // _EIGHT) + lane // _EIGHT) * _QUADS
        return [f // self.width, at + within]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the repacked shape of the parameter."""
        assert shape == self.extents
        return (shape[self.dimension] // self.width, self.starts + 4 * self.width)

    @property
    def starts(self) -> int:
        """Return the place of the starts in a block."""
        rest = prod(extent for place, extent in enumerate(self.extents) if place not in (self.dimension, self.channels))
        return rest * self._padded(self.extents[self.channels]) * self.width

    def apply(self, array: np.ndarray) -> np.ndarray:
        """Repack int8 weights; returns int8."""
        moved = np.moveaxis(array, (self.dimension, self.channels), (0, -1))
        filters, *rest, depth = moved.shape
        missing = self._padded(depth) - depth
        moved = np.pad(moved.reshape(filters, prod(rest), depth), ((0, 0), (0, 0), (0, missing)))
        wide = moved.astype(np.int64).reshape(filters, -1, 2, self.chunk // 2)
        starts = -wide.sum((1, 2, 3)) * self.zero
        if not self.dots:
            starts -= wide[:, :, 1].sum((1, 2))
        # filters as blocks, eights, lanes; depth as chunks, halves, quads, pairs
        blocks = (-1, self.width // _EIGHT, _EIGHT)
        if self.dots:
            split = moved.reshape(*blocks, moved[0].size // 4, 4).transpose(0, 3, 1, 2, 4)
        else:
            split = moved.reshape(*blocks, moved[0].size // self.chunk, 2, self.chunk // 4, 2).transpose(
                0, 3, 5, 1, 4, 2, 6
            )
        packed = split.reshape(filters // self.width, -1)
        ends = starts.astype(np.int32).astype("<i4").reshape(-1, self.width).view(np.int8)
        return np.ascontiguousarray(np.concatenate([packed, ends], axis=1))

    def _padded(self, depth: int) -> int:
        return -(-depth // self.chunk) * self.chunk
