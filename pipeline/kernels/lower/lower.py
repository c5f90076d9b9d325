"""Lower Relax to a Program: read the module in destination-passing form as steps over buffers.

After `CallTIRRewrite` the main function is a straight line of three kinds of bindings: `alloc_tensor`, calls of
PrimFuncs that write into these allocations, and views. Steps and buffers are read from that form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import tvm
from tvm.ir import IRModule
from tvm.relax.backend.cpu_generic import pipeline as cpu_pipeline
from tvm.tirx import PrimFunc

from ...program import Program
from ...targets import Machine
from ...tir import HOST
from ..schedule.tuned import Tuning
from .loops import take_apart
from .read_program import read_program
from .row_kernel import RowKernel


@dataclass(frozen=True)
class Lowered:
    """Hold a program with its kernels and weights.

    `kernels` are TIR functions by name; `weights` are arrays in the order of Program.weights. `rows` tell where the rows of
    unscheduled kernels lie that loops call by number. `machine` is the one kernels are scheduled for; `tuning` holds
    schedules known to beat the rules' choice. `last` are the tensors stored with channels last.
    """

    program: Program
    kernels: dict[str, PrimFunc]
    weights: Sequence[np.ndarray]
    rows: Mapping[str, RowKernel] = field(default_factory=dict)
    machine: Machine = Machine()
    tuning: Tuning = Tuning()
    last: frozenset[int] = frozenset()


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
    apart: bool = True,
) -> Lowered:
    """Read a legalized module as a program, with kernels as TVM made them: unscheduled, workspaces in place.

    `inputs` and `outputs` are the names of the model's; `nodes` are the ONNX nodes behind a Relax variable, if known. Loops
    are taken `apart`, or stay kernels. Raises ModelError for code that only TVM's runtime could execute.
    """
    program, kernels, weights = read_program(to_destination_passing(module), name, inputs, outputs, nodes or {})
    if apart:
        program, kernels = take_apart(program, kernels)
    return Lowered(program, kernels, weights, machine=machine, tuning=tuning)
