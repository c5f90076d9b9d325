"""Kernels that read weights in the layout another kernel chose: steps that run again read them twice.

    weight[f, c] ─► weight[f / 16, c, f % 16]       as Repack says; a tile finds its vectors in that form, see tiling.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad, TensorRegion
from tvm.tirx import PrimFunc

from ...program import Program, Step
from ...tir.loop_nests import all_of, reshaped
from .repack import Repack


def read_repacked(kernel: PrimFunc, parameter: int, repack: Repack) -> PrimFunc:
    """`kernel`, not scheduled yet, with a weight in a layout it is in already."""
    old = kernel.params[parameter]
    new = reshaped(old, repack.shape(tuple(int(extent) for extent in old.ty.shape)))

    def load(each: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(new, repack.index_map(*each.indices)) if each.source.same_as(old) else each

    def region(each: TensorRegion) -> TensorRegion:
        return all_of(new) if each.source.same_as(old) else each

    body = tvm_ffi.structural_map(kernel.body, [(TensorLoad, load), (TensorRegion, region)])
    params = [new if number == parameter else param for number, param in enumerate(kernel.params)]
    return PrimFunc(params, body, attrs=kernel.attrs)


def read_all_repacked(
    program: Program, kernels: Mapping[str, PrimFunc], layouts: Mapping[int, Repack]
) -> tuple[Program, dict[str, PrimFunc]]:
    """Steps and kernels that read weights, by their number, in these layouts; a kernel for each way to read them."""
    if not layouts:
        return program, dict(kernels)
    made: dict[tuple[str, tuple[tuple[int, Repack], ...]], str] = {}
    found = dict(kernels)
    steps = []
    for step in program.steps:
        ways = _ways(program, kernels[step.kernel], step, layouts)
        if ways and (step.kernel, ways) not in made:
            kernel = kernels[step.kernel]
            for parameter, repack in ways:
                kernel = read_repacked(kernel, parameter, repack)
            name = f"{step.kernel}_laid_out"
            while name in found:
                name += "_"
            made[step.kernel, ways], found[name] = name, kernel
        steps.append(replace(step, kernel=made[step.kernel, ways]) if ways else step)
    used = {step.kernel for step in steps}
    return replace(program, steps=tuple(steps)), {name: each for name, each in found.items() if name in used}


def _ways(
    program: Program, kernel: PrimFunc, step: Step, layouts: Mapping[int, Repack]
) -> tuple[tuple[int, Repack], ...]:
    """The parameters of a step that are in another shape than its kernel knows, and how."""
    return tuple(
        (number, layouts[program.tensors[tensor].weight])
        for number, tensor in enumerate(step.reads)
        if program.tensors[tensor].weight in layouts
        and [int(extent) for extent in kernel.params[number].ty.shape] != list(program.tensors[tensor].shape)
    )
