"""Count the bytes that a statement brings into a cache: what inner loops touch stays, as long as it fits.

    for i in 76:              w has 1 MiB, more than the cache: each i brings it in again, 76 MiB in all
        for j in 257:         x[i, :] fits beside one row of w: it is brought in once for each i
            for k in 1024:    y[i, j] += x[i, k] * w[j, k]

Ferrante, Sarkar, Thrash: On Estimating and Enhancing Cache Effectiveness, LCPC 1991.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

#: bytes of a line of every cache here
_LINE = 64


class Access(NamedTuple):
    """Moves of an access per step of each loop, outermost first, in elements of `size` bytes; None if unknown."""

    moves: tuple[int | None, ...]
    size: int


def brought_in(extents: Sequence[int], accesses: Collection[Access], cache: int) -> float:
    """Return the bytes that accesses in loops bring into a least-recently-used cache of `cache` bytes."""
    inner = len(extents)
    while inner and sum(_touched(extents, each, inner - 1) for each in accesses) <= cache:
        inner -= 1
    return sum(_touched(extents, each, inner) * _rounds(extents, each.moves, inner) for each in accesses)


def _touched(extents: Sequence[int], access: Access, first: int) -> int:
    """Return the bytes of all lines that the loops from `first` on touch."""
    moving = [(extent, move) for extent, move in zip(extents[first:], access.moves[first:]) if move != 0 and extent > 1]
    elements = math.prod(extent for extent, _ in moving)
    steps = [abs(move) for _, move in moving if move is not None]
    if len(steps) == len(moving):  # windows overlap
        elements = min(elements, 1 + sum((extent - 1) * step for (extent, _), step in zip(moving, steps)))
    return max(elements * min(access.size * min(steps, default=1), _LINE), _LINE)


def _rounds(extents: Sequence[int], moves: Sequence[int | None], inner: int) -> int:
    """Return how often the bytes of the loops from `inner` on are brought in: loops right outside may leave them alone."""
    outer = inner
    while outer and (moves[outer - 1] == 0 or extents[outer - 1] == 1):
        outer -= 1
    return math.prod(extents[:outer])
