"""Relax → program: the module in destination-passing form, read as steps over buffers.

After `CallTIRRewrite` the main function is a straight line of three kinds of bindings: `alloc_tensor`, calls of
PrimFuncs that write into what was allocated, and views. That is the form steps and buffers are read from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import tvm
from tvm.ir import IRModule
from tvm.relax.backend.cpu_generic import pipeline as cpu_pipeline
from tvm.tirx import PrimFunc

from ..graph import Program, Step
from ..passes.host import HOST
from ..targets import Machine
from .access import Sharing
from .laid_out import in_layouts
from .outlines import Outline, Outlines
from .reader import read_program
from .repack import Repack, repack_weights, repackable_parameters
from .scheduling import Schedule, largest_default, schedules
from .tuning import Request, Tuning
from .workspace import workspace_bytes


@dataclass(frozen=True)
class Lowered:
    """A program with its kernels (TIR functions by name) and its weights (arrays in the order of Program.weights).

    `layouts` are those that weights, by their number, are in although kernels that are not scheduled yet do not know.
    `machine` is what kernels are scheduled for, `tuning` what is known to be better for them than the rules' choice.
    """

    program: Program
    kernels: dict[str, PrimFunc]
    weights: tuple[np.ndarray, ...]
    layouts: Mapping[int, Repack] = field(default_factory=dict)
    machine: Machine = Machine()
    tuning: Tuning = Tuning()


def to_destination_passing(module: IRModule) -> IRModule:
    target = tvm.target.Target(HOST)
    with target:
        return tvm.transform.Sequential(cpu_pipeline.dataflow_lower_passes(target))(module)


def lower(
    module: IRModule,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Mapping[str, tuple[str, ...]] | None = None,
    machine: Machine = Machine(),
    tuning: Tuning = Tuning(),
) -> Lowered:
    """Read a legalized module as a program. Kernels are as TVM made them, their workspaces not yet removed.

    `inputs` and `outputs` name the model's; `nodes` gives the ONNX nodes behind a Relax variable, where known.
    Raises ModelError where something is left that only TVM's runtime could execute.
    """
    read = read_program(to_destination_passing(module), name, inputs, outputs, nodes or {})
    return Lowered(*read, machine=machine, tuning=tuning)


def without_workspaces(lowered: Lowered) -> tuple[Lowered, int]:
    """The same program with its kernels scheduled, what they may share, and the largest workspace left, in bytes.

    Fast schedules use a little workspace; none may use more than the largest of the kernels as TVM made them, so that
    the program never needs more than it did; what fits into registers is no workspace. What threads need to be there is
    (see `Machine.thread_bytes`). Weights come in the layout their kernel reads them in.
    """
    machine, tuning = lowered.machine, lowered.tuning
    lowered = _in_layouts(lowered)
    private = repackable_parameters(lowered.program)
    known = {name: schedules(kernel, private[name], machine) for name, kernel in lowered.kernels.items()}
    most = largest_default((lowered.kernels[name], lambda each=each: each.default) for name, each in known.items())
    chosen = {name: each.within(most, machine.register_bytes) for name, each in known.items()}
    # what is planned hangs on the rules' choice alone: a tuning costs no byte of ram
    planned = max((each.workspace for each in chosen.values()), default=0)
    calls = Counter(step.kernel for step in lowered.program.steps)
    taken = {
        name: tuning.schedule(
            Request(kernel, private[name], machine, False, chosen[name], max(planned, machine.register_bytes), calls[name])
        )
        for name, kernel in lowered.kernels.items()
    }
    repacks = {name: each.repacks for name, each in taken.items()}
    program, weights = repack_weights(lowered.program, lowered.weights, repacks)
    kernels = {name: each.kernel for name, each in taken.items()}
    scheduled = Lowered(_with_sharing(program, chosen), kernels, weights, machine=machine)
    return scheduled, _workspace(taken.values(), machine)


def planned(lowered: Lowered, outlines: Outlines) -> tuple[Lowered, int]:
    """What `without_workspaces` makes of it where there is no tuning, for a plan: kernels and weights stay as they are."""
    lowered = _in_layouts(lowered)
    chosen = outlines.chosen(lowered.kernels, repackable_parameters(lowered.program), lowered.machine)
    return replace(lowered, program=_with_sharing(lowered.program, chosen)), _workspace(chosen.values(), lowered.machine)


def _in_layouts(lowered: Lowered) -> Lowered:
    program, kernels = in_layouts(lowered.program, lowered.kernels, lowered.layouts)
    return replace(lowered, program=program, kernels=kernels, layouts={})


def _with_sharing(program: Program, chosen: Mapping[str, Schedule | Outline]) -> Program:
    return replace(program, steps=tuple(_sharing_step(step, chosen[step.kernel].sharing) for step in program.steps))


def _sharing_step(step: Step, found: Sharing) -> Step:
    if found.results != len(step.writes):
        return step
    return replace(step, in_place=found.in_place, copies=found.copies)


def _workspace(chosen: Collection[Schedule | Outline], machine: Machine) -> int:
    needed = [each.workspace for each in chosen if each.workspace > machine.register_bytes * each.threads]
    threads = machine.thread_bytes if any(each.threads > 1 for each in chosen) else 0
    return max(needed, default=0) + threads


def largest_default_workspace(lowered: Lowered) -> int:
    """Bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
