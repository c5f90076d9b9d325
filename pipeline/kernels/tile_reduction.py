"""Rule for kernels with one reduction (convolution, matmul, pooling, mean): accumulators in registers, epilogue included.

    for … tiles of the result:
        acc[rows, lanes] = 0
        for … reduction:                      padding, where there is some, copied here: a few rows of the tile
            acc[rows, lanes] += scalar[rows] * vector[lanes]
        result[tile] = epilogue(acc)          or a pooling, whose windows then stay within the tile

The workspace is the tile, and the copied rows. A weight that is not contiguous along the lanes is asked for in
another layout (see repack.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm import sym
from tvm.ir import Expr, Var
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import IntImm, PrimFunc

from ..targets import Machine
from .expressions import loads, uses
from .inlining import (
    REFUSALS,
    inline_producers,
    is_reduction,
    name_of,
    new_schedule,
    pads_for_reduction,
    result_names,
    root_blocks,
    scheduled_kernel,
)
from .repack import Repack
from .tile import Rows
from .tiling import Tiling, best_tiling, plain_axes


@dataclass(frozen=True)
class Tiled:
    """A scheduled kernel, the lanes of its tiles, and the layouts it wants for its parameters."""

    kernel: PrimFunc
    lanes: int
    repacks: tuple[Repack, ...] = ()


def tile_reduction(
    kernel: PrimFunc,
    repackable: frozenset[int] = frozenset(),
    machine: Machine = Machine(),
    *,
    copy_late: bool = False,
) -> Tiled | None:
    """`kernel` with its reduction in register tiles, or None where the rule does not match or a step is refused.

    `repackable` are the positions of the parameters that are weights no other kernel reads. With `copy_late`, padding
    is copied for one step of the reduction at a time: slower, and smaller.
    """
    schedule = new_schedule(kernel)
    try:
        return _tile(schedule, kernel, repackable, machine, copy_late)
    except REFUSALS:
        return None


def _tile(
    schedule: Schedule, kernel: PrimFunc, repackable: frozenset[int], machine: Machine, copy_late: bool
) -> Tiled | None:
    inline_producers(schedule, keep_padding_of_reductions=True)
    blocks = _roles(schedule)
    if blocks is None:
        return None
    reduction, consumer, padding = blocks
    places = _places(schedule, reduction, consumer)
    if places is None:
        return None
    tiling = best_tiling(
        schedule.get(reduction),
        tuple(schedule.get(block).writes[0].source for block in padding),
        tuple(kernel.params[number] for number in sorted(repackable)),
        _contiguous(schedule, consumer, places),
        {axis: place.rows for axis, place in places.items()},
        machine,
    )
    if tiling is None:
        return None
    repacks = _repack(schedule, kernel, reduction, tiling)
    _accumulate_along_lanes(schedule, reduction, tiling)
    inside = _tile_consumer(schedule, consumer, tiling, places)
    _tile_reduction(schedule, reduction, tiling, inside, padding, copy_late)
    return Tiled(scheduled_kernel(schedule, kernel), tiling.tile.lanes, repacks)


@dataclass(frozen=True)
class _Place:
    """Where an axis of the reduction stands among its consumer's axes, and how the consumer walks along it."""

    axis: int
    rows: Rows


def _roles(schedule: Schedule) -> tuple[SBlockRV, SBlockRV, list[SBlockRV]] | None:
    """The reduction, its one consumer (a copy is made if it has none), and padding; None if there is more."""
    names = result_names(schedule)
    reductions = [block for block in root_blocks(schedule) if is_reduction(schedule, block)]
    inner = [block for block in reductions if name_of(schedule, block) not in names]
    if len(reductions) == 1 and not inner:
        inner = reductions
        schedule.cache_write(reductions[0], 0, "global")
    if len(inner) != 1:
        return None
    consumers = schedule.get_consumers(inner[0])
    padding = [block for block in schedule.get_producers(inner[0]) if pads_for_reduction(schedule, block)]
    if len(consumers) != 1 or len(root_blocks(schedule)) != 2 + len(padding):
        return None
    return inner[0], consumers[0], padding


def _places(schedule: Schedule, reduction: SBlockRV, consumer: SBlockRV) -> dict[int, _Place] | None:
    """For each axis of the reduction, the consumer's axis that selects it; None where that is not plain to see."""
    written = plain_axes(schedule.get(reduction))
    block = schedule.get(consumer)
    produced = schedule.get(reduction).writes[0].source
    reads = [load for load in loads(block.body) if load.source.same_as(produced)]
    if written is None or not reads or plain_axes(block) is None:
        return None
    found: dict[int, _Place] = {}
    for load in reads:
        places = {}
        for dimension, axis in written.items():
            place = _place(block, load.indices[dimension])
            if place is not None:
                places[axis] = place
            elif int(schedule.get(reduction).iter_vars[axis].dom.extent) != 1:
                return None
        if found and places != found:
            return None
        found = places
    return found if len({place.axis for place in found.values()}) == len(found) else None


def _place(block: SBlock, index: Expr) -> _Place | None:
    """For an index that is an axis, or a window of a pooling whose windows do not overlap: axis × size + offset."""
    used = [n for n, axis in enumerate(block.iter_vars) if uses(index, axis.var)]
    spatial = [n for n in used if int(block.iter_vars[n].iter_type) == 0]
    if len(spatial) != 1 or len(used) > 2:
        return None
    axis = block.iter_vars[spatial[0]]
    linear = sym.detect_linear_equation(
        index, [block.iter_vars[n].var for n in (*spatial, *(set(used) - set(spatial)))]
    )
    if not linear or any(not isinstance(each, IntImm) for each in linear):
        return None
    unit = int(linear[0])
    window = [int(block.iter_vars[n].dom.extent) for n in used if n not in spatial]
    steps = [int(each) for each in linear[1:-1]]
    if int(linear[-1]) != 0 or (window or [1]) != [unit] or any(step != 1 for step in steps):
        return None
    return _Place(spatial[0], Rows(int(axis.dom.extent), unit))


def _contiguous(schedule: Schedule, consumer: SBlockRV, places: dict[int, _Place]) -> int | None:
    """The axis of the reduction that the last dimension of the kernel's result follows."""
    block = schedule.get(consumer)
    axes = plain_axes(block) or {}
    last = axes.get(len(block.body.indices) - 1)
    return next((axis for axis, place in places.items() if place.axis == last), None)


def _repack(schedule: Schedule, kernel: PrimFunc, reduction: SBlockRV, tiling: Tiling) -> tuple[Repack, ...]:
    if tiling.repack is None:
        return ()
    load, dimension = tiling.repack
    number = next(n for n, param in enumerate(kernel.params) if param.same_as(load.source))
    repack = Repack(number, dimension, tiling.tile.width)
    schedule.transform_layout(reduction, load.source, repack.index_map)
    return (repack,)


def _accumulate_along_lanes(schedule: Schedule, reduction: SBlockRV, tiling: Tiling) -> None:
    """The lanes last in the accumulators' layout: else every vector is put together from single elements."""
    written = plain_axes(schedule.get(reduction)) or {}
    lane = next(dimension for dimension, axis in written.items() if axis == tiling.lane)

    def lanes_last(*indices: Var) -> list[Var]:
        return [*indices[:lane], *indices[lane + 1 :], indices[lane]]

    schedule.transform_layout(reduction, ("write", 0), lanes_last)


def _tile_consumer(schedule: Schedule, consumer: SBlockRV, tiling: Tiling, places: dict[int, _Place]) -> LoopRV:
    """Split the consumer's loops into tiles; returns the innermost loop around a tile."""
    loops = schedule.get_loops(consumer)
    axes = schedule.get(consumer).iter_vars
    tile = tiling.tile
    lane = places[tiling.lane].axis
    lane_outer, groups, lanes = schedule.split(loops[lane], [None, tile.groups, tile.lanes])
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
        _into_registers(schedule, rows, groups, lanes)
    else:  # each element of the tile is used many times: those loops stay innermost, for LLVM to vectorize
        schedule.reorder(*outside, *summing, *rows, groups, lanes, *repeating)
    if summing:
        schedule.decompose_reduction(consumer, summing[0])
    return outside[-1]


def _tile_reduction(
    schedule: Schedule, reduction: SBlockRV, tiling: Tiling, inside: LoopRV, padding: list[SBlockRV], copy_late: bool
) -> None:
    schedule.compute_at(reduction, inside, preserve_unit_loops=True)
    axes = schedule.get(reduction).iter_vars
    loops = schedule.get_loops(reduction)[-len(axes) :]
    summing = [loop for loop, axis in zip(loops, axes) if int(axis.iter_type) == 2]
    groups, lanes = schedule.split(loops[tiling.lane], [tiling.tile.groups, tiling.tile.lanes])
    rows = [loops[axis] for axis in tiling.rows]
    single = [
        loop
        for number, (loop, axis) in enumerate(zip(loops, axes))
        if int(axis.iter_type) == 0 and number != tiling.lane and number not in tiling.rows
    ]
    schedule.reorder(*summing, *single, *rows, groups, lanes)
    for block in padding:
        schedule.compute_at(block, summing[-1 if copy_late else 0], preserve_unit_loops=True)
    _into_registers(schedule, rows, groups, lanes)
    schedule.decompose_reduction(reduction, summing[0])


def _into_registers(schedule: Schedule, rows: list[LoopRV], groups: LoopRV, lanes: LoopRV) -> None:
    for loop in (*rows, groups):
        schedule.unroll(loop)
    if int(schedule.get(lanes).extent) > 1:
        schedule.vectorize(lanes)
