"""Replace the steps of a streaming region by a loop: `merge_region`."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ...program import Overlay, Program, Step
from ...program.free_name import free_name
from ...program.workspaces import add_workspaces
from .growth import is_turned, turn_step
from .region import Region

_Step = TypeVar("_Step", bound=Step)


def region_step(program: Program, region: Region) -> Step:
    """Return one step for all of the region, with its operands, results and name."""
    steps = [program.steps[stage.step] for stage in region.stages]
    made = {*region.results, *region.rings}
    reads = tuple(
        dict.fromkeys(t for step in steps for t in step.reads if t not in made and program.tensors[t].weight is None)
    )
    over = region.replacement
    overlays = (
        ()
        if over is None
        else tuple(Overlay(reads.index(each), region.results.index(over.result)) for each in over.operands)
    )
    name = free_name(f"streamed_{steps[0].kernel}", {step.kernel for step in program.steps})
    return Step(
        name, reads, region.results, tuple(dict.fromkeys(node for each in steps for node in each.nodes)), overlays
    )


def estimate_region(program: Program, region: Region) -> tuple[Program, Step]:
    """Replace the steps of the region by one without kernels, with workspaces for rings and slots."""
    merged, step = merge_region(program, region, region_step(program, region))
    merged = add_workspaces(merged, {step.kernel: region.workspaces(program)})
    return merged, next(each for each in merged.steps if each.kernel == step.kernel)


def merge_region(program: Program, region: Region, loop: _Step) -> tuple[Program, _Step]:
    """Replace the steps of the region by its loop, at the place of the last; return it too.

    Steps around it turn what a result grows over, and the result, in place; see `growth.py`. Tensors that are never whole
    have no memory in the program any more: rings are of the loop.
    """
    inside = {stage.step for stage in region.stages}
    tensors, buffers = list(program.tensors), list(program.buffers)
    for tensor in region.rings:
        own = tensors[tensor].buffer_number
        tensors[tensor], buffers[own] = replace(tensors[tensor], shape=(0,)), replace(buffers[own], nbytes=0)
    program, before, loop, after = _turn_operand(
        replace(program, tensors=tuple(tensors), buffers=tuple(buffers)), region, loop
    )
    changed: dict[int, tuple[Step, ...]] = dict.fromkeys(inside, ()) | {max(inside): (*before, loop, *after)}
    kept = (each for n, one in enumerate(program.steps) for each in changed.get(n, (one,)))
    return replace(program, steps=tuple(kept)), loop


def _turn_operand(
    program: Program, region: Region, step: _Step
) -> tuple[Program, tuple[Step, ...], _Step, tuple[Step, ...]]:
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
