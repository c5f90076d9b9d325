"""Choose how a kernel's reduction maps to a register tile.

    conv:    result[n, f, y, x] += data[n, c, y + i, x + j] * weight[f, c, i, j]        f moves the weight alone
    matmul:  result[m, n]       += a[m, k] * b[k, n]                                    n moves b alone, m moves a alone
    pooling: result[n, c, y, x] = max(…, data[n, c, 2 y + i, 2 x + j])                  there is one operand only

An axis that moves one operand alone is laid along vector lanes; those that move the other alone become rows of the
tile (see rules/tiles/tile_size.py). Names play no part: a block qualifies by the form of its update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tvm import sym
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import SBlockRV, Schedule
from tvm.tirx import BufferStore, Mul, const

from ....targets import Machine
from ....tir.expressions import (
    accumulation,
    has_condition,
    is_choice,
    is_contiguous,
    is_dequantised,
    reads,
    unconverted,
    uses,
)
from ....tir.rolled_loops import MOST_STEPS
from ..axes.overlap_vectors import Wide
from ..vector_conditions import is_uniform
from .tile_operands import (
    conditions,
    is_apart,
    is_far,
    is_ragged,
    moved_bytes,
    moves_raggedly,
    packed_width,
    repacked_load,
    slides,
)
from .tile_size import Rows, Tile, TileSpace

#: scalars of another page in each step wait for it
_APART = 1.5
#: copying the padding into vectors costs about as much as the arithmetic
_PADDED_LANES = 2.0
#: a repacked weight is read in order; a strided one jumps from line to line
_REPACK = 0.99
#: dtypes of sums with as many lanes as a vector has floats
_DTYPES = ("float32", "int32")
#: bytes after which places in the nearest cache repeat
_PAGE = 4096
#: bytes of a result that the next cache holds beside the operands
_NEXT_CACHE = 1 << 18


@dataclass(frozen=True)
class Tiling:
    """Tiling of a reduction block's axes, given as positions in `block.iter_vars`."""

    lane: int
    rows: tuple[int, ...]
    tile: Tile
    #: load of a weight to repack, and the position of the lane axis among its indices
    repack: tuple[TensorLoad, int] | None
    cycles: float
    #: true if looping over lanes outside the rows moves less memory
    lanes_outermost: bool
    #: extent of the lane axis if the repacked weight is one block of all of it
    whole: int | None = None

    @property
    def packed(self) -> int:
        """Return the block width of the repacked weight."""
        if self.whole is not None:
            return self.whole
        return self.tile.width if self.tile.even else self.tile.lanes

    def turned(self) -> Tiling:
        """Return the same tile with the loops around it in the other order."""
        return replace(self, lanes_outermost=not self.lanes_outermost)


@dataclass(frozen=True)
class Place:
    """Position of a reduction's axis among its consumer's axes, and the consumer's step along it."""

    axis: int
    rows: Rows


@dataclass(frozen=True)
class Reduced:
    """Describe a reduction and its surroundings in a schedule, the input of tiling.

    `places` are those of the reduction's axes in its consumer; `padded` buffers computed under a condition; `repackable`
    the parameters whose layout may be chosen; `contiguous_result` the axis along which the kernel's result is contiguous;
    `apart` the elements of the result between neighbours along an axis; `uneven` that sizes of tiles need not divide their
    extents; `whole` the axis of a weight that is repacked as one block, if it is.
    """

    schedule: Schedule
    reduction: SBlockRV
    consumer: SBlockRV
    padding: Sequence[SBlockRV]
    places: Mapping[int, Place]
    block: SBlock
    padded: tuple[Var, ...]
    repackable: tuple[Var, ...]
    contiguous_result: int | None
    machine: Machine
    apart: Mapping[int, int]
    uneven: bool = False
    whole: int | None = None


def best_tiling(reduced: Reduced) -> Tiling | None:
    """Return the tiling of least estimated cycles; None for reductions of another form or dtype."""
    return min((group[0] for group in _by_lane(reduced)), key=lambda candidate: candidate.cycles, default=None)


def best_wide_tiling(wide: Wide, reduced: Reduced) -> Tiling | None:
    """Return the best tiling of a wide kernel: weights in blocks of a long axis, or with all of it side by side."""
    machine = wide.of(reduced.machine)
    if wide.is_long:
        return best_tiling(replace(reduced, machine=machine))
    found = best_tiling(replace(reduced, machine=machine, whole=wide.extent))
    return None if found is None else replace(found, whole=wide.rounded)


def tilings(reduced: Reduced) -> list[Tiling]:
    """List all tilings by estimated cycles; for tuning."""
    return sorted((each for group in _by_lane(reduced) for each in group), key=lambda candidate: candidate.cycles)


def _by_lane(reduced: Reduced) -> list[list[Tiling]]:
    operands = _operands(reduced.block)
    if operands is None:
        return []
    one, other = operands
    together = Mul(one, other), const(1, one.ty.dtype)
    # a square, or a product of two pictures: no axis moves one factor alone, as none does in a sum of one operand
    pairs = (operands, operands[::-1]) if _apart(reduced.block, one, other) else (together,)
    return [group for vector, scalar in pairs for group in _tilings(reduced, vector, scalar) if group]


def _apart(block: SBlock, one: Expr, other: Expr) -> bool:
    """Return whether some spatial axis moves one factor alone."""
    axes = [axis.var for axis in block.iter_vars if int(axis.iter_type) == 0 and int(axis.dom.extent) > 1]
    return any(uses(one, axis) != uses(other, axis) for axis in axes)


def _operands(block: SBlock) -> tuple[Expr, Expr] | None:
    """Return the two factors of a summed product; for other reductions (a mean, a maximum) the term, and 1."""
    update = block.body
    if block.init is None or not isinstance(update, BufferStore) or str(update.value.ty.dtype) not in _DTYPES:
        return None
    found = accumulation(update)
    if found is None or reads(found[1], update.buffer):
        return None
    _, term = found
    product = type(update.value).__name__ == "Add" and type(term).__name__ == "Mul"
    return (term.a, term.b) if product else (term, const(1, term.ty.dtype))


def _tilings(reduced: Reduced, vector: Expr, scalar: Expr) -> Iterator[list[Tiling]]:
    """Yield per spatial axis that moves `vector`, laid along lanes, its tilings, cheapest first.

    If it moves `scalar` too, by one element, both factors are vectors: channels of a depthwise convolution, if last.
    """
    block, tileable = reduced.block, {axis: place.rows for axis, place in reduced.places.items()}
    axes = [axis.var for axis in block.iter_vars]
    extents = [int(axis.dom.extent) for axis in block.iter_vars]
    spatial = [number for number, axis in enumerate(block.iter_vars) if int(axis.iter_type) == 0]
    alone = [n for n in spatial if uses(scalar, axes[n]) and not uses(vector, axes[n]) and n in tileable]
    steps = prod(extents) // prod(extents[n] for n in spatial)
    rows = tuple([n for n in alone if extents[n] > 1][-2:])
    reduced_axes = [n for n in range(len(axes)) if n not in spatial]
    asked, summed = conditions(scalar), [axes[n] for n in reduced_axes]
    if reduced.uneven:
        # where padding is skipped, peeling the end tiles of one axis is enough
        padded = reads(scalar, *reduced.padded)
        rows = tuple(
            n
            for n in rows
            if n == rows[-1] or tileable[n].unit > 1 or not (padded or any(uses(each, axes[n]) for each in asked))
        )
    shared = bool(rows) and slides(scalar, axes[rows[-1]])
    repeated = [extents[n] for n in reduced_axes if extents[n] > 1]
    taps = bool(repeated) and repeated[-1] <= MOST_STEPS
    if any(place.unit > 1 and axis not in rows for axis, place in tileable.items()):
        return
    for lane in spatial:
        both = uses(scalar, axes[lane])
        if not uses(vector, axes[lane]) or tileable.get(lane, Rows(0, 0)).unit != 1:
            continue
        if both and (not is_contiguous(scalar, axes[lane]) or _is_partial(scalar, axes[lane], reduced)):
            continue
        repack, packed = None, packed_width(vector, axes[lane])
        vectors = packed is not None or (
            is_contiguous(vector, axes[lane]) and not _is_partial(vector, axes[lane], reduced)
        )
        if extents[lane] > 1 and (not vectors or is_far(vector, axes[lane])):
            repack = repacked_load(vector, axes[lane], extents[lane], reduced.repackable)
        space = TileSpace(
            extents[lane],
            [tileable[n] for n in rows],
            steps,
            vectors=vectors or repack is not None,
            scattered=lane != reduced.contiguous_result,
            packed=packed,
            machine=reduced.machine,
            uneven=reduced.uneven,
            shared=shared and not both,
            taps=taps and not both,
            both=both,
            aliased=_conflicts(reduced.apart.get(lane, 1), extents[lane]),
            abreast=bool(rows) and rows[-1] == reduced.contiguous_result and tileable[rows[-1]].unit == 1,
            ragged=is_ragged(reduced.whole)
            if repack is not None
            else packed is None and moves_raggedly(vector, axes[lane]),
            converts=(is_dequantised(vector), is_dequantised(scalar)),
        )
        from_padding = reads(vector, *reduced.padded)
        apart = not both and bool(rows) and is_apart(scalar, summed)
        row_extents = prod(extents[n] for n in spatial if uses(scalar, axes[n]))
        moved = moved_bytes(vector, dict(zip(axes, extents))), moved_bytes(scalar, dict(zip(axes, extents)))
        group = []
        for tile in space.tiles():
            wanted = None if tile.lanes == 1 else repack
            cycles = (
                tile.cycles
                * (_APART if apart and tile.lanes > 1 else 1.0)
                * (_PADDED_LANES if from_padding else 1.0)
                * (_REPACK if wanted else 1.0)
            )
            lane_tiles, row_tiles = extents[lane] // tile.width, row_extents // prod(tile.rows)
            outermost = moved[0] * row_tiles > moved[1] * lane_tiles
            group.append(Tiling(lane, rows, tile, wanted, cycles, outermost))
        yield group


def _is_partial(operand: Expr, lane: Var, reduced: Reduced) -> bool:
    """Return whether a vector along `lane` may be read in part.

    Where padding is skipped, a condition may depend on a lane if it holds for whole vectors, or for none of one.
    """
    factor, width = unconverted(operand), reduced.machine.lanes
    if not is_choice(factor) or has_condition(factor.args[1]):
        return has_condition(operand)
    asked = [each for each in conditions(operand) if uses(each, lane)]
    return bool(asked) and not (reduced.uneven and all(is_uniform(each, lane, width) for each in asked))


def _conflicts(apart: int, count: int) -> bool:
    """Return whether `count` results, `apart` elements from each other, compete for places in caches.

    Those of a small result meet again in the next cache, soon enough.
    """
    return apart * 4 % _PAGE == 0 and apart * count * 4 > _NEXT_CACHE


def plain_axes(block: SBlock) -> dict[int, int] | None:
    """Map dimension → axis for a block with one result indexed by its own axes.

    Dimensions of extent 1 may be missing.
    """
    if not isinstance(block.body, BufferStore):
        return None
    found = {}
    for dimension, index in enumerate(block.body.indices):
        axis = next((n for n, axis in enumerate(block.iter_vars) if axis.var.same_as(index)), None)
        if axis is not None:
            found[dimension] = axis
        elif not sym.Analyzer().can_prove_equal(index, 0):
            return None
    return found
