"""Rewrite kernels to read weights that another kernel repacked: rematerialised steps read them twice.

weight[f, c] ─► weight[f / 16, c, f % 16]       see Repack; rules/tiles/tile_candidates.py recognises vectors in that form
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tvm.tirx import PrimFunc

from ...program import Program, Step
from ...program.free_name import free_name
from ...tir.loop_nests import exchange_params, reshaped
from .repack import Repack


def read_repacked(kernel: PrimFunc, parameter: int, repack: Repack) -> PrimFunc:
    """Rewrite an unscheduled `kernel` to read a weight that is already repacked."""
    old = kernel.params[parameter]
    new = reshaped(old, repack.shape(tuple(int(extent) for extent in old.ty.shape)))
    return exchange_params(kernel, {old: new}, lambda _, indices: repack.index_map(*indices))


def read_all_repacked(
    program: Program, kernels: Mapping[str, PrimFunc], layouts: Mapping[int, Repack], done: Collection[str] = ()
) -> tuple[Program, dict[str, PrimFunc]]:
    """Rewrite steps and kernels to read repacked weights, by weight number; one kernel per combination.

    The kernels `done` read them already.
    """
    if not layouts:
        return program, dict(kernels)
    made: dict[tuple[str, tuple[tuple[int, Repack], ...]], str] = {}
    found = dict(kernels)

    def reading(owner: Program, step: Step) -> Step:
        repacks = () if step.kernel in done else _pending_repacks(owner, kernels[step.kernel], step, layouts)
        if repacks and (step.kernel, repacks) not in made:
            kernel = kernels[step.kernel]
            for parameter, repack in repacks:
                kernel = read_repacked(kernel, parameter, repack)
            name = free_name(f"{step.kernel}_repacked", found)
            made[step.kernel, repacks], found[name] = name, kernel
        return replace(step, kernel=made[step.kernel, repacks]) if repacks else step

    program = program.with_calls(reading)
    used = {step.kernel for _, step, _ in program.calls()}
    return program, {name: each for name, each in found.items() if name in used}


def _pending_repacks(
    program: Program, kernel: PrimFunc, step: Step, layouts: Mapping[int, Repack]
) -> tuple[tuple[int, Repack], ...]:
    """Collect the parameters of a step that are repacked, but not yet in its kernel."""
    return tuple(
        (number, layouts[program.tensors[tensor].weight_number])
        for number, tensor in enumerate(step.reads)
        if program.tensors[tensor].weight in layouts
        and [int(extent) for extent in kernel.params[number].ty.shape] != list(program.tensors[tensor].shape)
    )
