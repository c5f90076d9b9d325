"""Choose the size of a register tile: pure arithmetic over loop extents, without TVM.

One step of a tile's reduction multiplies `groups` vectors of `lanes` elements of one operand with `rows` scalars
of the other (an outer product), so that every loaded value is used several times:

              lanes × groups
            ┌─────┬─────┬─────┐
     rows   │ acc │ acc │ acc │    rows × groups accumulators stay in registers
            └─────┴─────┴─────┘

Vectors have the machine's width, and all values live at once fit into its registers. If a size does not divide its
extent, the remainder is a smaller tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod

from ....support.divisors import divisors
from ....targets import Machine

#: least registers for operands
OPERANDS = 2
#: cycles to load a vector from the nearest cache, and from elsewhere
_NEAR_LOAD, _FAR_LOAD = 0.5, 1.25
#: lanes of a vector as long as a line of the cache; cycles to fetch one from elsewhere beside all other work. Each step of
#: such a tile takes so many more (25 tiles from 1 × 8 to 8 × 3, measured: 512 × 14 × 14 of 512, 128 × 56 × 56 of 64). For one
#: in two lines, whose successor is far away: cycles to load, and to fetch it (128 × 27 × 27 of 32, 64 × 13 × 13 of 512)
_LINE, _LINE_FETCH, _LINE_STEP, _RAGGED_LOAD, _RAGGED_FETCH = 16, 1.6, 1.75, 1.8, 5.0
#: cycles to broadcast one scalar to all lanes, and to use it as an element of a vector instead
_SCALAR_LOAD, _ELEMENT = 0.6, 0.5
#: fused multiply-adds started per cycle × their latency in cycles: fewer accumulators leave the unit idle
IN_FLIGHT = 8
#: the same for vectors as long as a line of the cache, whose loads delay some (measured: 64 × 14 × 14 of 384)
_LINES_IN_FLIGHT = 9
#: operations in place of multiply-adds that make floats of a vector of bytes, and of one to broadcast
#: (measured: 160 × 240 of 320, and single filters over 14 × 14)
_CONVERT, _CONVERT_SCALAR = 2, 1.5
#: cycles to store one vector, and to scatter one element
_VECTOR_STORE, _SCATTER = 1.0, 1.5
#: vectors that are transposed together, if there are as many, or else two, and cycles to store them, per lane
_BLOCK, _BLOCK_STORE = 4, 1.1
#: cycles to scatter an element if all of a tile compete for the same lines of the cache, and how many lines fit
_CONFLICT, _WAYS = 8.0, 8
#: penalty of a tile that leaves a remainder: the remainder is additional code
_LEFT_OVER = 1.1
#: penalty of a loop over taps: its control, and the scalars loaded again by each tap
_ROLLED = 1.03


@dataclass(frozen=True)
class Tile:
    """Size of a register tile, with its estimated cycles per element.

    `rows` are the extents of the unrolled axes, outermost first. `lanes` is a power of two: LLVM keeps accumulators of
    other vector widths out of registers. `rolled` tiles loop over taps: unrolled, they need more registers than there are.
    """

    lanes: int
    groups: int
    rows: tuple[int, ...]
    cycles: float
    #: true without a remainder
    even: bool = True
    rolled: bool = False

    @property
    def width(self) -> int:
        return self.lanes * self.groups

    @property
    def accumulators(self) -> int:
        return self.groups * prod(self.rows)


@dataclass(frozen=True)
class Rows:
    """Axis the rows of a tile come from: `extent` units of `unit` rows that stay together."""

    extent: int
    unit: int = 1


@dataclass(frozen=True)
class TileSpace:
    """Describe the loops that tiles cover, and how these move their operands.

    `width` is the extent of the axis along the lanes, `rows` the axes the scalars vary along, `steps` the
    length of the reduction; without `vectors` a lane is a single element; `scattered` says that results next to each
    other in lanes are apart in memory; `packed` is how many elements of a vector operand lie side by side. The lanes
    divide their extent; so does every other size but, if `uneven`, the number of vectors and the rows of the last axis.
    `shared` says that neighbouring rows read the same scalars in some steps, as sliding windows do: LLVM keeps these in
    registers from step to step if it unrolls them. `taps` says that LLVM would unroll the innermost steps. `both` says that
    the other operand is a vector too. `aliased` says that the places of neighbouring lanes' results compete in a cache,
    `abreast` that scattered results of the last axis of rows are neighbours in memory, `ragged` that vectors start anywhere
    in a line of the cache. `converts` says that vectors, that scalars are made of bytes.
    """

    width: int
    rows: Sequence[Rows]
    steps: int
    vectors: bool
    scattered: bool
    packed: int | None = None
    machine: Machine = Machine()
    uneven: bool = False
    shared: bool = False
    taps: bool = False
    both: bool = False
    aliased: bool = False
    abreast: bool = False
    ragged: bool = False
    converts: tuple[bool, bool] = (False, False)

    @cached_property
    def lanes(self) -> int:
        """Return the most lanes that divide the elements side by side."""
        side_by_side = self.width if self.packed is None else gcd(self.width, self.packed)
        powers = [self.machine.lanes >> n for n in range(self.machine.lanes.bit_length())]
        return next(lanes for lanes in powers if side_by_side % lanes == 0) if self.vectors else 1

    def tiles(self) -> list[Tile]:
        """List the tiles that fit into registers, by estimated cycles per element; among equals the most alike, then the largest."""
        machine, vectors = self.machine, self.width // self.lanes
        registers = machine.registers_of(self.lanes)
        most = registers - OPERANDS
        shared = self.shared and self._broadcasts and not machine.keep_tap_loops
        found = [
            self._tile(groups, counts)
            for groups in _sizes(vectors, most, self.uneven)
            for counts in _counts(self.rows, most // groups, self.uneven)
            if _held(groups, prod(counts), shared) <= registers
        ]
        if self.taps and machine.keep_tap_loops:
            found = [
                replace(tile, rolled=True, cycles=tile.cycles * _ROLLED)
                if _held(tile.groups, prod(tile.rows), self.shared) >= registers
                else tile
                for tile in found
            ]
        return sorted(
            found,
            key=lambda tile: (
                round(tile.cycles, 6),
                -vectors % tile.groups,
                -tile.accumulators,
                tile.groups,
                tile.rows,
            ),
        )

    @property
    def _broadcasts(self) -> bool:
        """Return whether a scalar takes a vector register of its own."""
        return self.machine.lanes > 1 and not self.machine.by_element

    def _tile(self, groups: int, counts: tuple[int, ...]) -> Tile:
        """Build the tile of a size, with the cycles per element over all tiles."""
        last, extent = (counts[-1], self.rows[-1].extent * self.rows[-1].unit) if self.rows else (1, 1)
        others, vectors = prod(counts[:-1]), self.width // self.lanes
        total = sum(
            times * again * self._cycles(width, others * height, self._store(groups, height))
            for width, times in _split(vectors, groups)
            for height, again in _split(extent, last)
        )
        even = vectors % groups == 0 and extent % last == 0
        cycles = total / (self.width * extent * others)
        return Tile(self.lanes, groups, counts, cycles if even else cycles * _LEFT_OVER, even)

    def _store(self, groups: int, rows: int) -> float:
        """Estimate the cycles to store one of `rows` neighbouring vectors."""
        if not self.scattered:
            return _VECTOR_STORE
        element = _CONFLICT if self.aliased and self.lanes * groups > _WAYS else None
        if not self.abreast or not self.machine.transposes or rows < 2:
            return self.lanes * (element or _SCATTER)
        blocks = -(-rows // (_BLOCK if rows >= _BLOCK else 2))
        return self.lanes * blocks * (element or _BLOCK_STORE) / rows

    def _cycles(self, groups: int, rows: int, store: float) -> float:
        """Estimate the cycles of one tile. Two multiply-adds and two loads start in a cycle."""
        scalar = _NEAR_LOAD * groups if self.both else _SCALAR_LOAD if self._broadcasts else _ELEMENT
        accumulators = groups * rows
        narrow, narrow_scalars = self.converts
        width = 1 if narrow else 4
        near = self.steps * groups * self.lanes * width <= self.machine.l1_bytes
        load, fetch, least, more = _NEAR_LOAD if near else _FAR_LOAD, 0.0, IN_FLIGHT, 0.0
        if self.lanes >= _LINE and self._broadcasts:
            ragged = self.ragged and not narrow
            load = _RAGGED_LOAD if ragged else _NEAR_LOAD
            fetch, least = 0.0 if near else (_RAGGED_FETCH if ragged else _LINE_FETCH) * width / 4, _LINES_IN_FLIGHT
            more = _LINE_STEP
        converting = groups * _CONVERT * narrow + rows * _CONVERT_SCALAR * narrow_scalars
        step = more + max((accumulators + converting) / 2, groups * load + rows * scalar, groups * fetch, least / 2)
        return self.steps * step + accumulators * store


def _held(groups: int, rows: int, shared: bool) -> int:
    """Count the registers in use at once: accumulators, the smaller operand, and one value of the larger.

    LLVM holds all shared scalars, and spills as soon as they are more than one too many.
    """
    held = groups * rows + min(groups, rows) + 1
    return max(held, groups * (rows + 1) + rows - 1) if shared and rows > groups else held


def _split(extent: int, size: int) -> list[tuple[int, int]]:
    """Split an extent into (size, count): tiles of `size`, and the remainder."""
    whole, rest = divmod(extent, size)
    return [(size, whole), (rest, 1)] if rest else [(size, whole)]


def _sizes(extent: int, largest: int, uneven: bool) -> Sequence[int]:
    return range(1, min(extent, largest) + 1) if uneven else divisors(extent, largest)


def _counts(axes: Sequence[Rows], largest: int, uneven: bool) -> Iterator[tuple[int, ...]]:
    """Yield the rows of each axis, in whole units; their product is at most `largest`."""
    if not axes:
        yield ()
        return
    for size in _sizes(axes[-1].extent, largest // axes[-1].unit, uneven and axes[-1].unit == 1):
        count = size * axes[-1].unit
        for outer in _counts(axes[:-1], largest // count, False):
            yield (*outer, count)
