"""Match the blocks of a kernel to their roles in register tiling: for rules/tile_reduction.py."""

from __future__ import annotations

from math import prod

from tvm import sym
from tvm.ir import Expr
from tvm.s_tir import SBlock
from tvm.tirx import IntImm, PrimFunc

from ....targets import Machine
from ....tir.expressions import loads, uses
from ....tir.inlining import (
    inline_producers,
    is_reduction,
    name_of,
    new_schedule,
    pads_for_reduction,
    result_names,
    root_blocks,
)
from .tile_candidates import Place, Reduced, plain_axes
from .tile_size import Rows


def parts_of(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Reduced | None:
    """Match a reduction, its one consumer, and padding, once the producers are inlined; None for other forms.

    Copies the result if the reduction has no consumer.
    """
    schedule = new_schedule(kernel)
    inline_producers(schedule, keep_padding_of_reductions=True)
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
    block, consumer = schedule.get(inner[0]), schedule.get(consumers[0])
    written, places = plain_axes(consumer), _places(block, consumer)
    if written is None or places is None:
        return None
    shape = [int(extent) for extent in consumer.body.buffer.ty.shape]
    dimensions = {axis: dimension for dimension, axis in written.items()}
    along = {axis: dimensions[place.axis] for axis, place in places.items() if place.axis in dimensions}
    return Reduced(
        schedule,
        inner[0],
        consumers[0],
        padding,
        places,
        block,
        tuple(schedule.get(each).writes[0].source for each in padding),
        tuple(kernel.params[number] for number in sorted(repackable)),
        next((axis for axis, dimension in along.items() if dimension == len(shape) - 1), None),
        machine,
        {axis: prod(shape[dimension + 1 :]) for axis, dimension in along.items()},
    )


def _places(reduction: SBlock, consumer: SBlock) -> dict[int, Place] | None:
    """Map each axis of the reduction to the consumer's axis that selects it; None for other index forms."""
    written, produced = plain_axes(reduction), reduction.writes[0].source
    read = [load for load in loads(consumer.body) if load.source.same_as(produced)]
    if written is None or not read:
        return None
    found: dict[int, Place] = {}
    for load in read:
        places = {}
        for dimension, axis in written.items():
            place = _place(consumer, load.indices[dimension])
            if place is not None:
                places[axis] = place
            elif int(reduction.iter_vars[axis].dom.extent) != 1:
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
