"""How large a register tile is: pure arithmetic over loop extents. No TVM.

One step of the reduction of a tile multiplies `groups` vectors of `lanes` elements of one operand with `rows` scalars
of the other (an outer product), so that every loaded value is used several times:

              lanes × groups
            ┌─────┬─────┬─────┐
     rows   │ acc │ acc │ acc │    rows × groups accumulators stay in registers
            └─────┴─────┴─────┘

The vectors are those of the machine, and what is needed at a time fits into its registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from ..targets import Machine

#: registers that operands take at least
_OPERANDS = 2
#: bytes of vectors that one tile after the other finds in the nearest cache, and cycles to load one from there, else
_NEAR, _NEAR_LOAD, _FAR_LOAD = 16384, 0.5, 1.0
#: fused multiply-adds started per cycle × their latency in cycles: fewer accumulators leave the unit idle
_IN_FLIGHT = 8
#: cycles to write one vector, and one single element elsewhere
_VECTOR_STORE, _SCATTER = 1.0, 1.5


@dataclass(frozen=True)
class Tile:
    """`rows` are the extents of the unrolled axes, outermost first; `lanes` is a power of two: of other
    vectors LLVM keeps no accumulators in registers."""

    lanes: int
    groups: int
    rows: tuple[int, ...]
    cycles: float

    @property
    def width(self) -> int:
        return self.lanes * self.groups

    @property
    def accumulators(self) -> int:
        return self.groups * _product(self.rows)


@dataclass(frozen=True)
class Rows:
    """An axis that rows of a tile come from: `extent` units of `unit` rows that have to stay together."""

    extent: int
    unit: int = 1


def best_tile(
    width: int,
    rows: Sequence[Rows],
    steps: int,
    *,
    vectors: bool,
    scattered: bool,
    packed: int | None = None,
    machine: Machine = Machine(),
) -> Tile | None:
    """The first of `tiles`; None if units are too large."""
    found = tiles(width, rows, steps, vectors=vectors, scattered=scattered, packed=packed, machine=machine)
    return found[0] if found else None


def tiles(
    width: int,
    rows: Sequence[Rows],
    steps: int,
    *,
    vectors: bool,
    scattered: bool,
    packed: int | None = None,
    machine: Machine = Machine(),
) -> list[Tile]:
    """The tiles that fit into registers, by estimated cycles per element, of equals the largest first.

    `width` is the extent of the axis along the lanes, `rows` the axes the scalars vary along, `steps` the
    length of the reduction; without `vectors` a lane is a single element; `scattered` says that results next to each
    other in lanes are apart in memory; `packed` is how many elements of a vector operand lie side by side. Every size
    divides its extent: a remainder would put a condition around every vector.
    """
    side_by_side = width if packed is None else gcd(width, packed)
    powers = [machine.lanes >> n for n in range(machine.lanes.bit_length())]
    lanes = next(lanes for lanes in powers if side_by_side % lanes == 0) if vectors else 1
    registers = machine.registers_of(lanes)
    most = registers - _OPERANDS
    candidates = [
        Tile(lanes, groups, counts, _cycles(lanes, groups, _product(counts), steps, scattered))
        for groups in divisors(side_by_side // lanes, most)
        for counts in _counts(rows, most // groups)
        if groups * _product(counts) + min(groups, _product(counts)) < registers
    ]
    return sorted(candidates, key=lambda tile: (round(tile.cycles, 6), -tile.accumulators, tile.groups, tile.rows))


def divisors(extent: int, largest: int) -> list[int]:
    return [size for size in range(1, min(extent, largest) + 1) if extent % size == 0]


def _counts(axes: Sequence[Rows], largest: int) -> Iterator[tuple[int, ...]]:
    """Rows of each axis: a divisor of its extent, in units; their product at most `largest`."""
    if not axes:
        yield ()
        return
    for size in divisors(axes[-1].extent, largest // axes[-1].unit):
        count = size * axes[-1].unit
        for outer in _counts(axes[:-1], largest // count):
            yield (*outer, count)


def _cycles(lanes: int, groups: int, rows: int, steps: int, scattered: bool) -> float:
    """Per element of the tile. Two multiply-adds and two loads start in a cycle."""
    accumulators = groups * rows
    load = _NEAR_LOAD if steps * groups * lanes * 4 <= _NEAR else _FAR_LOAD
    step = max(accumulators / 2, groups * load + rows / 2, _IN_FLIGHT / 2)
    store = accumulators * lanes * _SCATTER if scattered else accumulators * _VECTOR_STORE
    return (steps * step + store) / (accumulators * lanes)


def _product(values: Sequence[int]) -> int:
    product = 1
    for value in values:
        product *= value
    return product
