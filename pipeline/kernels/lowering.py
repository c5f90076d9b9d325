"""Relax → program: the module in destination-passing form, read as steps over buffers.

After `CallTIRRewrite` the main function is a straight line of three kinds of bindings: `alloc_tensor`, calls of
PrimFuncs that write into what was allocated, and views. That is the form steps and buffers are read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
import tvm_ffi
from tvm.ir import IRModule
from tvm.relax.backend.cpu_generic import pipeline as cpu_pipeline
from tvm.tirx import PrimFunc

from ..graph import Program
from ..passes.host import HOST
from .fuse_loops import fuse_loops
from .lane_sums import lane_sums
from .reader import read_program
from .repack import Repack, repack_weights, repackable_parameters
from .tile_reduction import tile_reduction
from .workspace import workspace_bytes

#: the most a rule may use to be fast, in bytes
RULE_WORKSPACE = 4096


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

    Weights come in the layout their kernel reads them in. See `_scheduled` for the choice of a schedule.
    """
    private = repackable_parameters(lowered.program)
    kernels, repacks, largest = {}, {}, 0
    for name, kernel in lowered.kernels.items():
        choice = _scheduled(kernel, private[name])
        kernels[name], repacks[name] = choice.kernel, choice.repacks
        largest = max(largest, choice.workspace)
    program, weights = repack_weights(lowered.program, lowered.weights, repacks)
    return Lowered(program, kernels, weights), largest


@dataclass(frozen=True)
class _Choice:
    kernel: PrimFunc
    workspace: int
    repacks: tuple[Repack, ...] = ()


#: schedules by structure: a search lowers the same kernels many times
_SCHEDULES: dict[tuple[int, frozenset[int]], list[tuple[PrimFunc, _Choice]]] = {}


def _scheduled(kernel: PrimFunc, repackable: frozenset[int]) -> _Choice:
    known = _SCHEDULES.setdefault((tvm_ffi.structural_hash(kernel), repackable), [])
    for original, choice in known:
        if tvm_ffi.structural_equal(original, kernel):
            return choice
    choice = _choose(kernel, repackable)
    known.append((kernel, choice))
    return choice


def _choose(kernel: PrimFunc, repackable: frozenset[int]) -> _Choice:
    """The first rule that matches with a small workspace; else loops fused, if that needs less than the default."""
    along = lane_sums(kernel, one_operand=True)
    if along is not None and (size := workspace_bytes(along)) <= RULE_WORKSPACE:
        return _Choice(along, size)
    for copy_late in (False, True):
        tiled = tile_reduction(kernel, repackable, copy_late=copy_late)
        if tiled is None:
            break
        size = workspace_bytes(tiled.kernel)
        if size <= RULE_WORKSPACE:
            return _Choice(tiled.kernel, size, tiled.repacks)
    default = workspace_bytes(kernel)
    if default:
        candidate = fuse_loops(kernel)
        smaller = workspace_bytes(candidate)
        if smaller < default:
            return _Choice(candidate, smaller)
    return _Choice(kernel, default)


def largest_default_workspace(lowered: Lowered) -> int:
    """Bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
