"""Replace the steps of a streaming region by one step: `merge_region`."""

from __future__ import annotations

from dataclasses import replace

from ...program import Buffer, Overlay, Program, Step, Tensor
from .region import Region


def merge_region(program: Program, region: Region) -> tuple[Program, Step]:
    """Replace the steps of the region by one step, at the place of the last; return it too.

    It writes the results, then the rings, then the slots, which nobody reads: they need a place while it runs, and none
    after. The last ring is that of a result that waits to replace operands.
    """
    inside = {stage.step for stage in region.stages}
    steps = [program.steps[number] for number in sorted(inside)]
    made = {*region.results, *region.rings}
    reads = tuple(dict.fromkeys(t for step in steps for t in step.reads if t not in made))
    results = (*region.results, *(t for t in region.rings if region.stage_of(program, t).kept))
    taken = {step.kernel for step in program.steps}
    name = f"streamed_{steps[0].kernel}"
    while name in taken:
        name += "_"
    tensors, buffers = list(program.tensors), list(program.buffers)
    slots = []
    for number, (elements, dtype) in enumerate(region.slots(program)):
        slots.append(len(buffers))
        results = (*results, len(tensors))
        tensors.append(Tensor((elements,), dtype, len(buffers)))
        buffers.append(Buffer(f"{name}_slot{number}", tensors[-1].nbytes))
    over = region.replacement
    in_place: tuple[Overlay, ...] = ()
    if over is not None:
        in_place = tuple(Overlay(reads.index(operand), results.index(over.result)) for operand in over.operands)
        if over.held:
            stage = region.stage_of(program, over.result)
            whole = tensors[over.result]
            shape = tuple(over.held if n == stage.axis else e for n, e in enumerate(whole.shape))
            waiting = replace(whole, shape=shape, buffer=len(buffers))
            results = (*results, len(tensors))
            tensors.append(waiting)
            buffers.append(Buffer(f"{buffers[whole.buffer].name}_rows", waiting.nbytes))
    step = Step(name, reads, results, tuple(dict.fromkeys(node for each in steps for node in each.nodes)), in_place)
    last = max(inside)
    kept = (step if n == last else each for n, each in enumerate(program.steps) if n == last or n not in inside)
    for stage in region.stages:
        tensor = program.steps[stage.step].writes[0]
        if tensor in region.rings:
            own = tensors[tensor].buffer
            assert own is not None
            in_slot = None if stage.kept else stage.slot
            shape = tuple((stage.kept if in_slot is None else stage.group) if n == stage.axis else e for n, e in enumerate(tensors[tensor].shape))
            tensors[tensor] = ring = replace(tensors[tensor], shape=shape, buffer=own if in_slot is None else slots[in_slot])
            buffers[own] = Buffer(buffers[own].name, ring.nbytes if in_slot is None else 0)
    return replace(program, steps=tuple(kept), tensors=tuple(tensors), buffers=tuple(buffers)), step
