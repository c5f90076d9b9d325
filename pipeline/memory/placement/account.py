"""Adds up what a model costs on a target, in the words of design.md, section 1. All sizes are bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...program import Program
from ...targets import Target
from ..footprint import Footprint
from .plan_arena import ArenaPlan

if TYPE_CHECKING:
    from ...program import Program
    from .. import ArenaPlan


def account(program: Program, plan: ArenaPlan, *, workspace: int, code: int, weights_in_place: bool) -> Footprint:
    """The footprint of `program` with the arena of `plan`.

    `workspace` is that of the kernel that needs most, `code` the text and read-only data without the weights.
    `weights_in_place` says that the target reads weights where they are stored, so that they take no ram.
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
    """The literature's static metric: inputs some kernel reads + weights + every kernel's results; views are free.

    Sharing memory leaves it as it is: what a kernel that went away would have copied is a tensor of the graph still.
    """
    reads = [tensor for step in program.steps for tensor in step.reads] + [view.source for view in program.views]
    writes = [tensor for step in program.steps for tensor in step.writes]
    writes += [view.tensor for view in program.views if view.elided]
    read = set(program.buffers_of(tuple(reads)))
    inputs = [port.tensor for port in program.inputs if program.tensors[port.tensor].buffer in read]
    tensors = sum(program.tensors[tensor].nbytes for tensor in dict.fromkeys((*inputs, *writes)))
    return tensors + sum(weight.nbytes for weight in program.weights)


def footprint_of(program: Program, plan: ArenaPlan, workspace: int, code: int, target: Target) -> Footprint:
    """What the library of a program takes, its `workspace` and `code` being known; in bytes."""
    from .. import account

    in_place = target.weights == "in-place"
    return account(program, plan, workspace=workspace, code=code, weights_in_place=in_place)
