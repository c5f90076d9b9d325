"""Fuse the loops of a kernel so that it needs no workspace: intermediate tensors shrink to single values.

A fused kernel as TVM makes it is a chain of blocks over whole tensors:

    pad ─► conv (reduction) ─► add ─► relu          `pad`, `conv` and `add` are workspaces as large as activations

1. inline every element-wise producer into its consumers;
2. compute every remaining block at its consumer (`compute_at`): inside the loops that select its elements, and no
   others, so that nothing is computed twice.

Moving producers into the consumer's loops, not consumers into the producer's, covers padding: the consumer's loops
visit its whole domain by construction. (`reverse_compute_at` drops the consumer instances that read no produced
element, and the result is silently wrong.)

A step TVM refuses changes nothing: the kernel stays correct, with a workspace that is measured and counted.
"""

from __future__ import annotations

from tvm.s_tir import SBlockRealize
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import PrimFunc
from tvm.tirx.analysis import undefined_vars

from ...tir.expressions import collect
from ...tir.inlining import attempt, inline_producers, intermediate_blocks, new_schedule, result_names, scheduled_kernel
from ...tir.switches import switchable


@switchable
def fuse_loops(kernel: PrimFunc) -> PrimFunc:
    """Shrink intermediate tensors to the elements one iteration of the result's loops needs."""
    schedule = new_schedule(kernel)
    inline_producers(schedule)
    for block in reversed(intermediate_blocks(schedule, result_names(schedule))):
        compute_at_consumer(schedule, block)
    return scheduled_kernel(schedule, kernel)


def compute_at_consumer(schedule: Schedule, block: SBlockRV) -> None:
    """Compute `block` at the consumer loops that select its elements, moved outermost."""
    consumers = schedule.get_consumers(block)
    if not consumers:
        return
    loops = _shared_loops(schedule, consumers)
    selecting = [
        any(flags) for flags in zip(*(selecting_loops(schedule, block, consumer, loops) for consumer in consumers))
    ]
    if not any(selecting):
        return
    outer = [loop for loop, selects in zip(loops, selecting) if selects]
    inner = [loop for loop, selects in zip(loops, selecting) if not selects]
    in_order = selecting == sorted(selecting, reverse=True)
    if not in_order and not (len(consumers) == 1 and attempt(schedule.reorder, *outer, *inner)):
        return
    attempt(schedule.compute_at, block, outer[-1], preserve_unit_loops=True)


def _shared_loops(schedule: Schedule, blocks: list[SBlockRV]) -> list[LoopRV]:
    """Return the loops around all of `blocks`, outermost first."""
    nests = [schedule.get_loops(block) for block in blocks]
    shared = []
    for loops in zip(*nests):
        if not all(schedule.get(loop).same_as(schedule.get(loops[0])) for loop in loops):
            break
        shared.append(loops[0])
    return shared


def selecting_loops(schedule: Schedule, producer: SBlockRV, consumer: SBlockRV, loops: list[LoopRV]) -> list[bool]:
    """Tell for each loop of `consumer` whether it selects elements of the producer."""
    produced = schedule.get(producer).writes[0].source
    block = schedule.get(consumer)
    index_vars = [
        var
        for region in block.reads
        if region.source.same_as(produced)
        for axis in region.region
        for var in undefined_vars(axis.min)
    ]
    values = iteration_values(schedule, consumer)
    loop_vars = [
        var
        for axis, value in zip(block.iter_vars, values)
        if any(axis.var.same_as(used) for used in index_vars)
        for var in undefined_vars(value)
    ]
    return [any(schedule.get(loop).loop_var.same_as(var) for var in loop_vars) for loop in loops]


def iteration_values(schedule: Schedule, block: SBlockRV) -> list:
    """Return the bindings of the block's axes, in terms of the loops around it."""
    wanted, loops = schedule.get(block), schedule.get_loops(block)
    inside = collect(schedule.get(loops[-1]).body, SBlockRealize) if loops else []
    return next((list(each.iter_values) for each in inside if each.block.same_as(wanted)), [])
