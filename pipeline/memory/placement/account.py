"""Add up the footprint of a model on a target. All sizes are bytes.

design.md, section 1, defines the words.
"""

from __future__ import annotations

from dataclasses import replace

from ...program import Program
from ...targets import Target
from ..footprint import Footprint, Measured
from .plan_arena import ArenaPlan


def account(program: Program, plan: ArenaPlan, *, workspace: int, code: int, weights_in_place: bool) -> Footprint:
    """Return the footprint of `program` with the arena of `plan`.

    `workspace` is memory beside the arena, for threads; `code` the text and read-only data without the weights.
    `weights_in_place` says that the target reads weights from their storage, so that they take no ram.
    """
    weights = program.weight_bytes
    return Footprint(
        ram=plan.arena + workspace + (0 if weights_in_place else weights),
        flash=weights + code,
        arena=plan.arena,
        workspace=workspace,
        weights=weights,
        code=code,
        bound=plan.bound,
        floor=plan.floor,
        proved=plan.proved,
        kernels=len(program.steps),
        sum=sum_of_tensors(program),
    )


def sum_of_tensors(program: Program) -> int:
    """Return the literature's static metric: inputs some kernel reads + weights + every kernel's results.

    Views are free. Sharing memory leaves the metric as it is: the result of a copy that went away still counts as a
    tensor of the graph.
    """
    reads = [tensor for step in program.steps for tensor in step.reads] + [view.source for view in program.views]
    writes = [tensor for step in program.steps for tensor in step.results]
    writes += [view.tensor for view in program.views if view.elided]
    read = set(program.buffers_of(tuple(reads)))
    inputs = [port.tensor for port in program.inputs if program.tensors[port.tensor].buffer in read]
    tensors = sum(program.tensors[tensor].nbytes for tensor in dict.fromkeys((*inputs, *writes)))
    return tensors + sum(weight.nbytes for weight in program.weights)


def footprint_of(program: Program, plan: ArenaPlan, workspace: int, code: int, target: Target, measured: Measured | None = None) -> Footprint:
    """Return the footprint of a program's library with known `workspace` and `code`, in bytes.

    Without an operating system, ram and flash are those of the image, once it is linked, and the stack, which is in the first ram,
    as far as `measured`.
    """
    in_place = target.weights == "in-place"
    found = account(program, plan, workspace=workspace, code=code, weights_in_place=in_place)
    if measured is None or measured.ram is None or measured.flash is None:
        return found
    stack = measured.stack or 0
    first = next((region for region in measured.regions if region.kind == "ram"), None)
    regions = tuple(replace(region, used=region.used + stack) if region is first else region for region in measured.regions)
    code = measured.flash - found.weights
    return replace(found, ram=measured.ram + stack, stack=stack, flash=measured.flash, code=code, regions=regions)
