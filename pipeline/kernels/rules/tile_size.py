"""How large a register tile is: pure arithmetic over loop extents. No TVM.

One step of the reduction of a tile multiplies `groups` vectors of `lanes` elements of one operand with `rows` scalars
of the other (an outer product), so that every loaded value is used several times:

              lanes × groups
            ┌─────┬─────┬─────┐
     rows   │ acc │ acc │ acc │    rows × groups accumulators stay in registers
            └─────┴─────┴─────┘

The vectors are those of the machine, and what is needed at a time fits into its registers. Where a size does not divide
its extent, what is left over is a smaller tile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from ...targets import Machine

#: registers that operands take at least
_OPERANDS = 2
#: bytes of vectors that one tile after the other finds in the nearest cache, and cycles to load one from there, else
_NEAR, _NEAR_LOAD, _FAR_LOAD = 16384, 0.5, 1.25
#: cycles to have one scalar in all lanes, and where it is an element of a vector
_SCALAR_LOAD, _ELEMENT = 0.6, 0.5
#: fused multiply-adds started per cycle × their latency in cycles: fewer accumulators leave the unit idle
_IN_FLIGHT = 8
#: cycles to write one vector, and one single element elsewhere
_VECTOR_STORE, _SCATTER = 1.0, 1.5
#: what a tile has to be better by to be taken although something is left over: that is code of its own
_LEFT_OVER = 1.1


@dataclass(frozen=True)
class Tile:
    """`rows` are the extents of the unrolled axes, outermost first; `lanes` is a power of two: of other
    vectors LLVM keeps no accumulators in registers."""

    lanes: int
    groups: int
    rows: tuple[int, ...]
    cycles: float
    #: whether nothing is left over
    even: bool = True

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


def best_tile(width: int, rows: Sequence[Rows], steps: int, **options) -> Tile | None:
    """The first of `tiles`; None if units are too large."""
    found = tiles(width, rows, steps, **options)
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
    uneven: bool = False,
    shared: bool = False,
) -> list[Tile]:
    """The tiles that fit into registers, by estimated cycles per element, of equals the largest first.

    `width` is the extent of the axis along the lanes, `rows` the axes the scalars vary along, `steps` the
    length of the reduction; without `vectors` a lane is a single element; `scattered` says that results next to each
    other in lanes are apart in memory; `packed` is how many elements of a vector operand lie side by side. The lanes
    divide their extent; so does every other size but, if `uneven`, the number of vectors and the rows of the last axis.
    `shared` says that rows next to each other read the same scalars in some steps, as windows that slide do: LLVM keeps
    these in registers from step to step.
    """
    side_by_side = width if packed is None else gcd(width, packed)
    powers = [machine.lanes >> n for n in range(machine.lanes.bit_length())]
    lanes = next(lanes for lanes in powers if side_by_side % lanes == 0) if vectors else 1
    registers = machine.registers_of(lanes)
    most = registers - _OPERANDS
    candidates = [
        _tile(lanes, width // lanes, groups, rows, counts, steps, scattered, machine)
        for groups in _sizes(width // lanes, most, uneven)
        for counts in _counts(rows, most // groups, uneven)
        if _held(groups, _product(counts), shared and _broadcasts(machine)) <= registers
    ]
    return sorted(candidates, key=lambda tile: (round(tile.cycles, 6), -tile.accumulators, tile.groups, tile.rows))


def _held(groups: int, rows: int, shared: bool) -> int:
    """Registers in use at a time: the accumulators, the operand there is less of, and one value of the other. Of what
    is shared LLVM holds all, which spills where it is more than one too many."""
    held = groups * rows + min(groups, rows) + 1
    return max(held, groups * (rows + 1) + rows - 1) if shared and rows > groups else held


def _broadcasts(machine: Machine) -> bool:
    """Whether a scalar takes a vector of its own."""
    return machine.lanes > 1 and not machine.by_element


def _tile(
    lanes: int,
    vectors: int,
    groups: int,
    rows: Sequence[Rows],
    counts: tuple[int, ...],
    steps: int,
    scattered: bool,
    machine: Machine,
) -> Tile:
    """The tile, with the cycles per element of all tiles there are: `vectors` by the extents of `rows`."""
    last, extent = (counts[-1], rows[-1].extent * rows[-1].unit) if rows else (1, 1)
    others = _product(counts[:-1])
    total = sum(
        times * again * _cycles(lanes, width, others * height, steps, scattered, machine)
        for width, times in _split(vectors, groups)
        for height, again in _split(extent, last)
    )
    even = vectors % groups == 0 and extent % last == 0
    cycles = total / (vectors * lanes * extent * others)
    return Tile(lanes, groups, counts, cycles if even else cycles * _LEFT_OVER, even)


def _split(extent: int, size: int) -> list[tuple[int, int]]:
    """Sizes that make up an extent, and how often: `size`, and what is left over."""
    whole, rest = divmod(extent, size)
    return [(size, whole), (rest, 1)] if rest else [(size, whole)]


def _sizes(extent: int, largest: int, uneven: bool) -> Sequence[int]:
    return range(1, min(extent, largest) + 1) if uneven else divisors(extent, largest)


def divisors(extent: int, largest: int) -> list[int]:
    return [size for size in range(1, min(extent, largest) + 1) if extent % size == 0]


def _counts(axes: Sequence[Rows], largest: int, uneven: bool) -> Iterator[tuple[int, ...]]:
    """Rows of each axis, in units; their product at most `largest`."""
    if not axes:
        yield ()
        return
    for size in _sizes(axes[-1].extent, largest // axes[-1].unit, uneven and axes[-1].unit == 1):
        count = size * axes[-1].unit
        for outer in _counts(axes[:-1], largest // count, False):
            yield (*outer, count)


def _cycles(lanes: int, groups: int, rows: int, steps: int, scattered: bool, machine: Machine) -> float:
    """Of one tile. Two multiply-adds and two loads start in a cycle."""
    scalar = _SCALAR_LOAD if _broadcasts(machine) else _ELEMENT
    accumulators = groups * rows
    load = _NEAR_LOAD if steps * groups * lanes * 4 <= _NEAR else _FAR_LOAD
    step = max(accumulators / 2, groups * load + rows * scalar, _IN_FLIGHT / 2)
    return steps * step + (accumulators * lanes * _SCATTER if scattered else accumulators * _VECTOR_STORE)


def _product(values: Sequence[int]) -> int:
    product = 1
    for value in values:
        product *= value
    return product
