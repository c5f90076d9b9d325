"""Tile kernels with one reduction (convolution, matmul, pooling, mean): accumulators in registers, epilogue fused.

    for … tiles of the result:
        acc[rows, lanes] = 0
        for … reduction:                      padding that cannot be skipped copied here: a few rows of the tile
            acc[rows, lanes] += scalar[rows] * vector[lanes]
        result[tile] = epilogue(acc)          or a pooling, whose windows then stay within the tile

If padding of a sum can be skipped, or tiles do not divide the result, the end tiles are peeled (loop_peeling.py). The
workspace is the tile, and the copied rows. A weight that is not contiguous along the lanes is repacked (weights/repack.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod

from tvm.ir import Var
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import PrimFunc

from ....targets import Machine
from ....tir.index_grid import NoMatch
from ....tir.inlining import REFUSALS, scheduled_kernel
from ....tir.rolled_loops import with_rolled_taps
from ...weights.repack import Repack
from ..axes.overlap_vectors import Wide, widened
from ..axes.split_groups import split_groups
from ..loop_peeling import has_skippable_padding, peel_loops, skips_products
from ..rule import RuleResult, Speed
from ..vector_reduction import vector_sums
from .sum_chains import sum_chains
from .tile_candidates import Reduced, Tiling, best_tiling, best_wide_tiling, plain_axes, tilings
from .tile_roles import parts_of
from .tile_size import OPERANDS, Tile
from .unswitch_choices import unswitch_choices

#: elements of padding that are copied at once where it is copied late
_FEW = 256


@dataclass(frozen=True)
class Tiled:
    """Scheduled kernel with the lanes of its tiles and its repacks."""

    kernel: PrimFunc
    lanes: int
    repacks: tuple[Repack, ...] = ()


def tile_reduction(
    kernel: PrimFunc,
    repackable: frozenset[int] = frozenset(),
    machine: Machine = Machine(),
    *,
    copy_late: bool = False,
    choose: Callable[[Reduced], Tiling | None] = best_tiling,
) -> Tiled | None:
    """Tile the reduction of `kernel` in registers; None if the rule does not match or TVM refuses a step.

    `repackable` are the positions of the parameters that are weights no other kernel reads. With `copy_late`, padding
    is copied for few steps of the reduction at a time: slower, and smaller. `choose` picks the tiling.
    """
    for peeled in (True, False):
        parts = _parts(kernel, repackable, machine, peeled and not copy_late)
        tiling = None if parts is None else choose(parts)
        if parts is None or tiling is None:
            return None
        try:
            return _tile(kernel, parts, tiling, copy_late)
        except REFUSALS:
            return None
        except NoMatch:
            continue
    return None


def register_tiles(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield register tiles, with padding copied early, then late: a Rule.

    Groups of filters get an axis of their own. Where it costs less, the last vectors of an axis overlap. Without vector lanes, sums along memory, which are vectors
    too, go first.
    """
    grouped = split_groups(kernel, machine.lanes)
    if grouped is not None:
        for result in register_tiles(grouped.kernel, repackable, machine):
            joined = grouped.joined(result.kernel, result.repacks)
            if joined is not None:
                yield result._replace(kernel=joined[0], repacks=joined[1])
        return
    wide = _cheaper_wide(kernel, repackable, machine)
    for copy_late in (False, True):
        if wide is None:
            break
        choose = partial(best_wide_tiling, wide)
        tiled = tile_reduction(wide.kernel, repackable, wide.of(machine), copy_late=copy_late, choose=choose)
        narrow = None if tiled is None else wide.narrowed(tiled.kernel, tiled.repacks)
        if narrow is not None:
            yield RuleResult(*narrow)
    for copy_late in (False, True):
        tiled = tile_reduction(kernel, repackable, machine, copy_late=copy_late)
        if tiled is None:
            return
        if tiled.lanes == 1:
            yield from vector_sums(kernel, repackable, machine)
        yield RuleResult(tiled.kernel, tiled.repacks, speed=Speed.FAST if tiled.lanes > 1 else Speed.LANES)


def _cheaper_wide(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Wide | None:
    """Return the widened kernel whose whole vectors cost less than the best tiles of `kernel`, if any."""
    cycles = [
        (_least_cycles(wide.kernel, repackable, wide.of(machine), partial(best_wide_tiling, wide)), wide)
        for wide in widened(kernel, machine)
    ]
    found = [(each * wide.rounded / wide.extent, wide) for each, wide in cycles if each is not None]
    least, best = min(found, key=lambda each: each[0], default=(inf, None))
    plain = _least_cycles(kernel, repackable, machine) if found else None
    return best if plain is None or least < plain else None


def _least_cycles(
    kernel: PrimFunc,
    repackable: frozenset[int],
    machine: Machine,
    choose: Callable[[Reduced], Tiling | None] = best_tiling,
) -> float | None:
    parts = _parts(kernel, repackable, machine, True)
    tiling = None if parts is None else choose(parts)
    return None if tiling is None else tiling.cycles


def tiling_variants(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> tuple[list[Tiling], bool]:
    """List all tilings by estimated cycles, and tell whether padding has to be copied.

    Empty if the rule does not match.
    """
    parts = _parts(kernel, repackable, machine, True)
    return ([], False) if parts is None else (tilings(parts), bool(parts.padding))


def _parts(kernel: PrimFunc, repackable: frozenset[int], machine: Machine, peeled: bool) -> Reduced | None:
    """Match the parts of a kernel; with `peeled`, allow uneven tiles if all padding can be skipped.

    Not on targets with joined registers: on a BPI-F3, peeled tiles are 39 % more instructions for mtcnn-onet, and 2 %
    fewer for ocr-cls; but conditions of a transposed convolution would stay inside its tiles. Nor for short code, which
    has no room for end tiles of their own.
    """
    try:
        parts = parts_of(kernel, repackable, machine)
    except REFUSALS:
        return None
    if parts is None or not peeled or machine.compact:
        return parts
    if machine.lmul > 1 and not skips_products(parts.block):
        return parts
    paddings = [parts.schedule.get(block) for block in parts.padding]
    return replace(parts, uneven=has_skippable_padding(parts.block, paddings))


def _tile(kernel: PrimFunc, parts: Reduced, tiling: Tiling, copy_late: bool) -> Tiled:
    schedule, padding, machine = parts.schedule, parts.padding, parts.machine
    skipped = bool(padding) or skips_products(parts.block)
    peeled = parts.uneven and (skipped or not tiling.tile.even)
    if peeled:
        for block in padding:
            schedule.compute_inline(block)
        padding = []
    repacks = _repack(schedule, kernel, parts.reduction, tiling)
    _accumulate_along_lanes(schedule, parts.reduction, tiling)
    inside = _tile_consumer(parts, tiling)
    _tile_reduction(schedule, parts.reduction, tiling, inside, padding, copy_late)
    tiled = scheduled_kernel(schedule, kernel)
    tiled = peel_loops(tiled) if peeled else _in_chains(tiled, tiling.tile, machine)
    tiled = tiled if machine.compact else unswitch_choices(tiled)
    return Tiled(with_rolled_taps(tiled) if tiling.tile.rolled else tiled, tiling.tile.lanes, repacks)


def _in_chains(tiled: PrimFunc, tile: Tile, machine: Machine) -> PrimFunc:
    """Give the sums of a tile of few vectors several accumulators each; short code has no room for that."""
    if machine.compact or tile.lanes == 1:
        return tiled
    return sum_chains(tiled, tile.accumulators, machine.registers_of(tile.lanes) - OPERANDS)


def _repack(schedule: Schedule, kernel: PrimFunc, reduction: SBlockRV, tiling: Tiling) -> tuple[Repack, ...]:
    if tiling.repack is None:
        return ()
    load, dimension = tiling.repack
    number = next(n for n, param in enumerate(kernel.params) if param.same_as(load.source))
    repack = Repack(number, dimension, tiling.packed)
    schedule.transform_layout(reduction, load.source, repack.index_map)
    return (repack,)


def _accumulate_along_lanes(schedule: Schedule, reduction: SBlockRV, tiling: Tiling) -> None:
    """Lay the accumulators out with lanes last: else every vector is assembled from single elements."""
    written = plain_axes(schedule.get(reduction)) or {}
    lane = next(dimension for dimension, axis in written.items() if axis == tiling.lane)

    def lanes_last(*indices: Var) -> list[Var]:
        return [*indices[:lane], *indices[lane + 1 :], indices[lane]]

    schedule.transform_layout(reduction, ("write", 0), lanes_last)


def _tile_consumer(parts: Reduced, tiling: Tiling) -> LoopRV:
    """Split the consumer's loops into tiles; return the innermost loop around a tile.

    Windows of a pooling are unrolled as the rest of a tile: LLVM leaves accumulators that a loop indexes in memory,
    and stores one after each multiply-add.
    """
    schedule, consumer, places = parts.schedule, parts.consumer, parts.places
    loops = schedule.get_loops(consumer)
    axes = schedule.get(consumer).iter_vars
    tile = tiling.tile
    lane = places[tiling.lane].axis
    vectors, lanes = schedule.split(loops[lane], [None, tile.lanes])
    lane_outer, groups = schedule.split(vectors, [None, tile.groups])
    split = {lane: lane_outer}
    rows = []
    for axis, count in zip(tiling.rows, tile.rows):
        place = places[axis]
        outer, inner = schedule.split(loops[place.axis], [None, count // place.rows.unit])
        split[place.axis] = outer
        rows.append(inner)
    selecting = {place.axis for place in places.values()}
    outside = [split.get(number, loop) for number, loop in enumerate(loops) if number in selecting]
    outside.remove(lane_outer)
    outside.insert(0 if tiling.lanes_outermost else len(outside), lane_outer)
    summing = [loop for loop, axis in zip(loops, axes) if int(axis.iter_type) == 2]
    repeating = [
        loop
        for number, (loop, axis) in enumerate(zip(loops, axes))
        if number not in selecting and int(axis.iter_type) == 0
    ]
    if all(int(schedule.get(loop).extent) == 1 for loop in repeating):
        schedule.reorder(*outside, *repeating, *summing, *rows, groups, lanes)
        _into_registers(schedule, rows if parts.machine.compact else [*summing, *rows], groups, lanes)
    else:  # each element of the tile is used many times: those loops stay innermost, for LLVM to vectorize
        schedule.reorder(*outside, *summing, *rows, groups, lanes, *repeating)
    if summing:
        schedule.decompose_reduction(consumer, summing[0])
    return outside[-1]


def _tile_reduction(
    schedule: Schedule,
    reduction: SBlockRV,
    tiling: Tiling,
    inside: LoopRV,
    padding: Sequence[SBlockRV],
    copy_late: bool,
) -> None:
    schedule.compute_at(reduction, inside, preserve_unit_loops=True)
    axes = schedule.get(reduction).iter_vars
    loops = schedule.get_loops(reduction)[-len(axes) :]
    summing = [loop for loop, axis in zip(loops, axes) if int(axis.iter_type) == 2]
    groups, lanes = schedule.split(loops[tiling.lane], [None, tiling.tile.lanes])
    rows = [loops[axis] for axis in tiling.rows]
    single = [
        loop
        for number, (loop, axis) in enumerate(zip(loops, axes))
        if int(axis.iter_type) == 0 and number != tiling.lane and number not in tiling.rows
    ]
    # the smaller operand stays in registers, while the larger one is loaded value by value
    few_rows = prod(tiling.tile.rows) < tiling.tile.groups
    schedule.reorder(*summing, *single, *((groups, *rows) if few_rows else (*rows, groups)), lanes)
    for block in padding:
        _copy_at(schedule, block, inside, summing, copy_late)
    _into_registers(schedule, rows, groups, lanes)
    schedule.decompose_reduction(reduction, summing[0])


def _copy_at(schedule: Schedule, padding: SBlockRV, tile: LoopRV, summing: list[LoopRV], late: bool) -> None:
    """Copy padding for all steps of the sum but the outermost; if `late`, for as many as a few lines of it suffice.

    What each step would copy again (a sampled picture whose places are data) is copied once a tile.
    """

    def copied(loop: LoopRV) -> int:
        schedule.compute_at(padding, loop, preserve_unit_loops=True)
        inside = schedule.get_loops(padding)[-len(schedule.get(padding).iter_vars) :]
        return prod(int(schedule.get(each).extent) for each in inside)

    once = copied(tile)
    again = copied(summing[0]) == once and int(schedule.get(summing[0]).extent) > 1
    if again and not late:
        copied(tile)
    for loop in summing[1:] if late else ():
        if copied(loop) <= _FEW:
            return


def _into_registers(schedule: Schedule, rows: list[LoopRV], groups: LoopRV, lanes: LoopRV) -> None:
    for loop in (*rows, groups):
        schedule.unroll(loop)
    if int(schedule.get(lanes).extent) > 1:
        schedule.vectorize(lanes)
