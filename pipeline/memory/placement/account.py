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

    `workspace` is memory outside the arena, for threads; `code` the text and read-only data without the weights.
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


def footprint_of(
    program: Program, plan: ArenaPlan, workspace: int, code: int, target: Target, measured: Measured | None = None
) -> Footprint:
    """Return the footprint of a program's library with known `workspace` and `code`, in bytes.

    The stack is part of ram once it is `measured`. Without an operating system, ram and flash are those of the linked image,
    whose first ram holds the stack.
    """
    in_place = target.weights == "in-place"
    found = account(program, plan, workspace=workspace, code=code, weights_in_place=in_place)
    if measured is None:
        return found
    if target.bare and measured.ram is not None and measured.flash is not None:
        found = replace(found, ram=measured.ram, flash=measured.flash, code=measured.flash - found.weights)
    stack = measured.stack or 0
    first = next((region for region in measured.regions if region.kind == "ram"), None)
    regions = tuple(
        replace(region, used=region.used + stack) if region is first else region for region in measured.regions
    )
    return replace(found, ram=found.ram + stack, stack=stack, regions=regions)
