"""Replace the steps of a streaming region by one step: `merge_region`."""

from __future__ import annotations

from dataclasses import replace

from ...program import Buffer, Overlay, Program, Step, Tensor
from ...program.free_name import free_name
from .growth import is_turned, turn_step
from .region import Region


def merge_region(program: Program, region: Region) -> tuple[Program, Step]:
    """Replace the steps of the region by one step, at the place of the last; return it too.

    Steps around it turn what a result grows over, and the result, in place; see `growth.py`.

    It writes the results, then the rings, then the slots, which nobody reads: they need a place while it runs, and none
    after. The last ring is that of a result that waits to replace operands.
    """
    inside = {stage.step for stage in region.stages}
    steps = [program.steps[number] for number in sorted(inside)]
    made = {*region.results, *region.rings}
    reads = tuple(dict.fromkeys(t for step in steps for t in step.reads if t not in made))
    results = (*region.results, *(t for t in region.rings if region.stage_of(program, t).kept))
    taken = {step.kernel for step in program.steps}
    name = free_name(f"streamed_{steps[0].kernel}", taken)
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
    for stage in region.stages:
        tensor = program.steps[stage.step].writes[0]
        if tensor in region.rings:
            own = tensors[tensor].buffer
            assert own is not None
            in_slot = None if stage.kept else stage.slot
            shape = tuple((stage.kept if in_slot is None else stage.group) if n == stage.axis else e for n, e in enumerate(tensors[tensor].shape))
            tensors[tensor] = ring = replace(tensors[tensor], shape=shape, buffer=own if in_slot is None else slots[in_slot])
            buffers[own] = Buffer(buffers[own].name, ring.nbytes if in_slot is None else 0)
    program, before, step, after = _turned(replace(program, tensors=tuple(tensors), buffers=tuple(buffers)), region, step)
    last = max(inside)
    kept = (each for n, one in enumerate(program.steps) for each in ((*before, step, *after) if n == last else () if n in inside else (one,)))
    return replace(program, steps=tuple(kept)), step


def _turned(program: Program, region: Region, step: Step) -> tuple[Program, tuple[Step, ...], Step, tuple[Step, ...]]:
    """Make room for a result that grows, and lay its rows and the operand's one after the other.

    Returns the program, the steps before, the step itself and the steps after it.
    """
    over = region.replacement
    if over is None or over.growth is None:
        return program, (), step, ()
    (operand,), result, growth = over.operands, over.result, over.growth
    place, written = step.reads.index(operand), step.writes.index(result)
    axis = region.stage_of(program, result).axis
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    if not is_turned(program.tensors[operand].shape, growth.axis):
        program, turn, operand = turn_step(program, operand, growth.axis, f"{step.kernel}_turned{place}")
        before = (turn,)
    if not is_turned(program.tensors[result].shape, axis):
        program, turn, result = turn_step(program, result, axis, f"{step.kernel}_turned_back{written}", back=True)
        after = (turn,)
    own = program.tensors[result].buffer
    buffers = tuple(replace(each, nbytes=growth.nbytes) if n == own else each for n, each in enumerate(program.buffers))
    reads = tuple(operand if n == place else each for n, each in enumerate(step.reads))
    writes = tuple(result if n == written else each for n, each in enumerate(step.writes))
    step = replace(step, reads=reads, writes=writes, in_place=(Overlay(place, written, growth.shift),))
    return replace(program, buffers=buffers), before, step, after


def before_turns(region: Region, step: Step) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the reads and writes of a merged step by the tensors before any was turned."""
    over = region.replacement
    if over is None or over.growth is None:
        return step.reads, step.writes
    (operand,), ((read, write),) = over.operands, ((each.read, each.write) for each in step.in_place)
    reads = tuple(operand if n == read else tensor for n, tensor in enumerate(step.reads))
    return reads, tuple(over.result if n == write else tensor for n, tensor in enumerate(step.writes))
