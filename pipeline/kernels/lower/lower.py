"""Relax → program: the module in destination-passing form, read as steps over buffers.

After `CallTIRRewrite` the main function is a straight line of three kinds of bindings: `alloc_tensor`, calls of
PrimFuncs that write into what was allocated, and views. That is the form steps and buffers are read from.
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
from ...tir.host import HOST
from ..schedule.tuned import Tuning
from ..weights.repack import Repack
from .read_program import read_program


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














