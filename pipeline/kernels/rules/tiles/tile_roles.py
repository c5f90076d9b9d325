"""Match the blocks of a kernel to their roles in register tiling: for rules/tile_reduction.py."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tvm import sym
from tvm.ir import Expr
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import SBlockRV, Schedule
from tvm.tirx import IntImm, PrimFunc

from ....targets import Machine
from ....tir.expressions import loads, uses
from ....tir.inlining import inline_producers, is_reduction, name_of, pads_for_reduction, result_names, root_blocks
from .tile_candidates import Reduced, plain_axes
from .tile_size import Rows


@dataclass(frozen=True)
class Place:
    """Position of a reduction's axis among its consumer's axes, and the consumer's step along it."""

    axis: int
    rows: Rows


@dataclass(frozen=True)
class Parts:
    """Blocks the rule matches, and the places of the reduction's axes in its consumer."""

    reduction: SBlockRV
    consumer: SBlockRV
    padding: list[SBlockRV]
    places: dict[int, Place]
    reduced: Reduced


def parts_of(schedule: Schedule, kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Parts | None:
    """Inline the producers in `schedule`, then match the parts of `kernel`; None for other forms."""
    inline_producers(schedule, keep_padding_of_reductions=True)
    blocks = _roles(schedule)
    if blocks is None:
        return None
    reduction, consumer, padding = blocks
    places = _places(schedule, reduction, consumer)
    if places is None:
        return None
    reduced = Reduced(
        schedule.get(reduction),
        tuple(schedule.get(block).writes[0].source for block in padding),
        tuple(kernel.params[number] for number in sorted(repackable)),
        _contiguous(schedule, consumer, places),
        {axis: place.rows for axis, place in places.items()},
        machine,
        apart=_apart(schedule, consumer, places),
    )
    return Parts(reduction, consumer, padding, places, reduced)


def _roles(schedule: Schedule) -> tuple[SBlockRV, SBlockRV, list[SBlockRV]] | None:
    """Find the reduction, its one consumer, and padding; None if there is more.

    Copies the result if the reduction has no consumer.
    """
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


def _places(schedule: Schedule, reduction: SBlockRV, consumer: SBlockRV) -> dict[int, Place] | None:
    """Map each axis of the reduction to the consumer's axis that selects it; None for other index forms."""
    written = plain_axes(schedule.get(reduction))
    block = schedule.get(consumer)
    produced = schedule.get(reduction).writes[0].source
    reads = [load for load in loads(block.body) if load.source.same_as(produced)]
    if written is None or not reads or plain_axes(block) is None:
        return None
    found: dict[int, Place] = {}
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


def _place(block: SBlock, index: Expr) -> Place | None:
    """Match an index: an axis, or axis × size + offset in a non-overlapping pooling window."""
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
    return Place(spatial[0], Rows(int(axis.dom.extent), unit))


def _contiguous(schedule: Schedule, consumer: SBlockRV, places: dict[int, Place]) -> int | None:
    """Find the axis of the reduction that the last dimension of the kernel's result follows."""
    block = schedule.get(consumer)
    axes = plain_axes(block) or {}
    last = axes.get(len(block.body.indices) - 1)
    return next((axis for axis, place in places.items() if place.axis == last), None)


def _apart(schedule: Schedule, consumer: SBlockRV, places: dict[int, Place]) -> dict[int, int]:
    """Count the elements of the kernel's result between neighbours along each axis of the reduction."""
    block = schedule.get(consumer)
    shape = [int(extent) for extent in block.body.buffer.ty.shape]
    steps = {axis: prod(shape[dimension + 1 :]) for dimension, axis in (plain_axes(block) or {}).items()}
    return {axis: steps[place.axis] for axis, place in places.items() if place.axis in steps}
