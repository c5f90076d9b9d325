"""Count the bytes that statements in loops bring into a cache: the least recently used go first.

    for t in 56:                  all of one t is 40 KiB, more than the cache: each t brings w and u in again
        for j in 257:             x[t, :] stays from j to j, beside one row of w
            for k in 32:          y[t, j] += x[t, k] * w[j, k]
        for j in 64:
            z[t, j] = u[j] …

Ferrante, Sarkar, Thrash: On Estimating and Enhancing Cache Effectiveness, LCPC 1991.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable
from typing import NamedTuple

#: bytes of a line of every cache here
_LINE = 64


class StridedAccess(NamedTuple):
    """Moves of an access per step of each loop, outermost first, in elements of `size` bytes; None if unknown.

    Accesses of one `source`, of `nbytes`, with the same moves touch the same bytes.
    """

    moves: tuple[int | None, ...]
    size: int
    source: Hashable = None
    nbytes: int = 1 << 62


class StatementNest(NamedTuple):
    """Accesses of a statement in loops, outermost first, and the share of the iterations that run it.

    Loops are recognised by name, of all statements of a kernel.
    """

    loops: tuple[Hashable, ...]
    extents: tuple[int, ...]
    accesses: tuple[StridedAccess, ...]
    share: float = 1.0

    def touched(self, access: StridedAccess, first: int) -> int:
        """Return the bytes of all lines that the loops from `first` on touch."""
        steps = zip(self.extents[first:], access.moves[first:])
        moving = [
            (extent, None if move is None else abs(move) * access.size)
            for extent, move in steps
            if move != 0 and extent > 1
        ]
        runs, run = 1, access.size  # runs of bytes apart, each of so many
        for extent, step in sorted(moving, key=lambda each: each[1] or 0):
            if step is None:
                run *= extent
            elif step <= max(run, _LINE):
                run += (extent - 1) * step
            else:
                runs *= extent
        return max(min(runs * max(run, _LINE), access.nbytes), _LINE)


class _Touched(NamedTuple):
    """Bytes touched in a loop, and the share of its iterations that touch them."""

    nbytes: int
    share: float


class _LoopBytes:
    """Bytes that all statements touch in each loop, told apart by `same`."""

    def __init__(self) -> None:
        self._found: dict[Hashable, dict[Hashable, _Touched]] = defaultdict(dict)
        self._known: dict[tuple[Hashable, float], float] = {}

    def add(self, loop: Hashable, same: Hashable, nbytes: int, share: float) -> None:
        """Add bytes that a share of the iterations touches; bytes added before count once."""
        before = self._found[loop].get(same)
        self._found[loop][same] = _Touched(nbytes, share if before is None else max(share, before.share))

    def between(self, loop: Hashable, share: float) -> float:
        """Return the bytes touched from one use to the next, if a share of the iterations uses them."""
        key = (loop, share)
        if key not in self._known:
            found = self._found[loop].values() if share else ()
            self._known[key] = sum(each.nbytes * min(1.0, each.share / share) for each in found)
        return self._known[key]


class CacheTraffic:
    """Bytes that the statements of a kernel bring into caches.

    `nests` are all its statements: bytes stay between two uses as long as all touched meanwhile fit the cache.
    """

    def __init__(self, nests: Collection[StatementNest]):
        self._step, self._whole = _LoopBytes(), _LoopBytes()
        for number, nest in enumerate(nests):
            for access in nest.accesses:
                source = number if access.source is None else access.source
                for first, loop in enumerate(nest.loops):
                    for found, start in ((self._step, first + 1), (self._whole, first)):
                        same = (source, access.moves[start:], nest.extents[start:])
                        found.add(loop, same, nest.touched(access, start), nest.share)

    def brought_in(self, nest: StatementNest, cache: int) -> float:
        """Return the bytes that a nest brings into a cache of `cache` bytes: it keeps all of the loops that gain most."""
        inner = len(nest.loops)
        found = [self._kept_from(nest, inner, cache)]
        while inner and self._whole.between(nest.loops[inner - 1], nest.share) <= cache:
            inner -= 1
            found.append(self._kept_from(nest, inner, cache))
        return min(found)

    def _kept_from(self, nest: StatementNest, inner: int, cache: int) -> float:
        """Return the bytes brought in if all bytes of the loops from `inner` on stay."""
        return sum(nest.touched(each, inner) * self._rounds(nest, each, inner, cache) for each in nest.accesses)

    def brought_again(self, nest: StatementNest, cache: int) -> float:
        """Return the bytes that a nest brings in after their first use."""
        return max(0.0, self.brought_in(nest, cache) - sum(nest.touched(each, 0) for each in nest.accesses))

    def _rounds(self, nest: StatementNest, access: StridedAccess, inner: int, cache: int) -> float:
        """Return how often the bytes of the loops from `inner` on are brought in: loops right outside may leave them alone."""
        moves, size, outer = access.moves, access.size, inner
        while outer and (
            nest.extents[outer - 1] == 1 or (moves[outer - 1] == 0 and self._between(nest, outer, inner) <= cache)
        ):
            outer -= 1
        rounds = nest.share * math.prod(nest.extents[:outer])
        move = moves[outer - 1] if outer else None
        if move and self._step.between(nest.loops[outer - 1], nest.share) <= cache:
            # a line stays until the loop has passed it
            extent, part = nest.extents[outer - 1], min(1.0, abs(move) * size / _LINE)
            rounds *= (1 + (extent - 1) * part) / extent
        return max(1.0, rounds)

    def _between(self, nest: StatementNest, outer: int, inner: int) -> float:
        """Return the bytes touched between two uses of the bytes from `inner` on, by steps around `outer`."""
        others = self._step.between(nest.loops[outer - 1], nest.share)
        if outer == inner:
            return others
        own = self._step.between(nest.loops[inner - 1], nest.share)
        return others - self._whole.between(nest.loops[outer], nest.share) + own
