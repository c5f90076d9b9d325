"""Relax → program: the module in destination-passing form, read as steps over buffers.

After `CallTIRRewrite` the main function is a straight line of three kinds of bindings: `alloc_tensor`, calls of
PrimFuncs that write into what was allocated, and views. That is the form steps and buffers are read from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import tvm
import tvm_ffi
from tvm.ir import IRModule
from tvm.relax.backend.cpu_generic import pipeline as cpu_pipeline
from tvm.tirx import PrimFunc

from ..graph import Program, Step
from ..passes.host import HOST
from .access import Sharing, sharing
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
    """The same program with its kernels scheduled, what they may share, and the largest workspace left, in bytes.

    Fast schedules use a little workspace; none may use more than the largest of the kernels as TVM made them, so that
    the program never needs more than it did. Weights come in the layout their kernel reads them in.
    """
    private = repackable_parameters(lowered.program)
    schedules = {name: _schedules(kernel, private[name]) for name, kernel in lowered.kernels.items()}
    most = max((each.default for each in schedules.values()), default=0)
    chosen = {name: each.within(most) for name, each in schedules.items()}
    repacks = {name: each.repacks for name, each in chosen.items()}
    program, weights = repack_weights(lowered.program, lowered.weights, repacks)
    program = replace(program, steps=tuple(_with_sharing(step, chosen[step.kernel]) for step in program.steps))
    kernels = {name: each.kernel for name, each in chosen.items()}
    return Lowered(program, kernels, weights), max((each.workspace for each in chosen.values()), default=0)


@dataclass(frozen=True)
class _Schedule:
    """A way to run a kernel: the scheduled function, its workspace in bytes, and the layouts of weights it wants."""

    kernel: PrimFunc
    workspace: int
    repacks: tuple[Repack, ...] = ()

    @cached_property
    def sharing(self) -> Sharing:
        return sharing(self.kernel)


def _with_sharing(step: Step, schedule: _Schedule) -> Step:
    found = schedule.sharing
    if found.results != len(step.writes):
        return step
    return replace(step, in_place=found.in_place, copies=found.copies)


@dataclass(frozen=True)
class _Schedules:
    """The ways to run a kernel, the fastest first; `default` is the workspace of the kernel as TVM made it, in bytes."""

    default: int
    ways: tuple[_Schedule, ...]

    def within(self, most: int) -> _Schedule:
        """The fastest way that needs at most `most` bytes, else the one that needs least."""
        smallest = min(self.ways, key=lambda way: way.workspace)
        return next((way for way in self.ways if way.workspace <= most), smallest)


#: schedules by structure: a search lowers the same kernels many times
_KNOWN: dict[tuple[int, frozenset[int]], list[tuple[PrimFunc, _Schedules]]] = {}


def _schedules(kernel: PrimFunc, repackable: frozenset[int]) -> _Schedules:
    known = _KNOWN.setdefault((tvm_ffi.structural_hash(kernel), repackable), [])
    for original, schedules in known:
        if tvm_ffi.structural_equal(original, kernel):
            return schedules
    default = workspace_bytes(kernel)
    ways = [*_fast(kernel, repackable)]
    if default:
        fused = fuse_loops(kernel)
        ways.append(_Schedule(fused, workspace_bytes(fused)))
    schedules = _Schedules(default, (*ways, _Schedule(kernel, default)))
    known.append((kernel, schedules))
    return schedules


def _fast(kernel: PrimFunc, repackable: frozenset[int]) -> Iterator[_Schedule]:
    """What the rules make of the kernel, as far as the workspace is small; the first is the one to take."""
    along = lane_sums(kernel, one_operand=True)
    if along is not None and (size := workspace_bytes(along)) <= RULE_WORKSPACE:
        yield _Schedule(along, size)
        return
    for copy_late in (False, True):
        tiled = tile_reduction(kernel, repackable, copy_late=copy_late)
        if tiled is None:
            return
        size = workspace_bytes(tiled.kernel)
        if size <= RULE_WORKSPACE:
            yield _Schedule(tiled.kernel, size, tiled.repacks)
            return


def largest_default_workspace(lowered: Lowered) -> int:
    """Bytes of the largest workspace among the kernels as TVM made them."""
    return max((workspace_bytes(kernel) for kernel in lowered.kernels.values()), default=0)
