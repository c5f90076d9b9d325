"""Relax → program: the module in destination-passing form, read as steps over buffers.

After `CallTIRRewrite` the main function is a straight line of three kinds of bindings: `alloc_tensor`, calls of
PrimFuncs that write into what was allocated, and views. That is the form steps and buffers are read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tvm
import tvm_ffi
from tvm.ir import IRModule
from tvm.relax.backend.cpu_generic import pipeline as cpu_pipeline
from tvm.tirx import PrimFunc

from ..graph import Program
from ..passes.host import HOST
from .fuse_loops import fuse_loops
from .reader import read_program
from .workspace import workspace_bytes

@dataclass(frozen=True)
class Lowered:
    """A program with its kernels (TIR functions by name) and its weights (arrays in the order of Program.weights)."""

    program: Program
    kernels: dict[str, PrimFunc]
    weights: tuple[np.ndarray, ...]


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
) -> Lowered:
    """Read a legalized module as a program. Kernels are as TVM made them, their workspaces not yet removed.

    `inputs` and `outputs` name the model's; `nodes` gives the ONNX nodes behind a Relax variable, where known.
    Raises ModelError where something is left that only TVM's runtime could execute.
    """
    return Lowered(*read_program(to_destination_passing(module), name, inputs, outputs, nodes or {}))


def without_workspaces(lowered: Lowered) -> tuple[Lowered, int]:
    """The same program with its kernels scheduled, and the largest workspace left, in bytes.

    A kernel whose schedule would need more workspace than the default keeps the default.
    """
    kernels, largest = {}, 0
    for name, kernel in lowered.kernels.items():
        scheduled, size = _scheduled(kernel)
        kernels[name] = scheduled
        largest = max(largest, size)
    return replace(lowered, kernels=kernels), largest


#: schedules by structure: a search lowers the same kernels many times
_SCHEDULES: dict[int, list[tuple[PrimFunc, PrimFunc, int]]] = {}


def _scheduled(kernel: PrimFunc) -> tuple[PrimFunc, int]:
    known = _SCHEDULES.setdefault(tvm_ffi.structural_hash(kernel), [])
    for original, scheduled, size in known:
        if tvm_ffi.structural_equal(original, kernel):
            return scheduled, size
    default = workspace_bytes(kernel)
    scheduled, size = kernel, default
    if default:
        candidate = fuse_loops(kernel)
        smaller = workspace_bytes(candidate)
        if smaller < default:
            scheduled, size = candidate, smaller
    known.append((kernel, scheduled, size))
    return scheduled, size


def largest_default_workspace(lowered: Lowered) -> int:
    """Bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
