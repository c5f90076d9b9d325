"""The kernels of a program whose buffers share memory: each made for where its operands and results lie.

An operand that lies in a result is read from there, through the result's own pointer. That keeps what TVM promises LLVM
true (`tirx.noalias`: different pointers, different memory), so that the loops of the kernel are still vectorized.
Tensors that lie anywhere in a buffer are aligned to their elements, not to the 64 bytes TVM counts on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.tirx import BufferStore, PrimFunc

from ...memory import ALIGNMENT
from ...program import DTYPE_BYTES, Overlay, Program, Step
from ...tir.expressions import replaced
from .lower import Lowered


@dataclass(frozen=True)
class _KernelVariant:
    """One of the ways a kernel is called: the operands that lie in results."""

    kernel: str
    in_place: tuple[Overlay, ...]


def specialise_kernels(lowered: Lowered) -> Lowered:
    """`lowered` with a kernel for each way its steps call them; kernels no step calls are dropped."""
    program = lowered.program
    ways = [_variant_of(program, step) for step in program.steps]
    names = _names(dict.fromkeys(ways), lowered.kernels)
    kernels = {}
    for way, name in names.items():
        steps = [step for step, called in zip(program.steps, ways) if called == way]
        kernel = lowered.kernels[way.kernel]
        kernel = _read_in_place(kernel, steps[0], way.in_place)
        kernels[name] = _aligned(kernel, _alignments(program, steps))
    steps = tuple(replace(step, kernel=names[way]) for step, way in zip(program.steps, ways))
    return replace(lowered, program=replace(program, steps=steps), kernels=dict(sorted(kernels.items())))


def _variant_of(program: Program, step: Step) -> _KernelVariant:
    return _KernelVariant(step.kernel, tuple(overlay for overlay in step.in_place if program.is_in_place(step, overlay)))


def _names(ways: Iterable[_KernelVariant], taken: Iterable[str]) -> dict[_KernelVariant, str]:
    """The name of the kernel itself where nothing is in place; otherwise one of its own."""
    names: dict[_KernelVariant, str] = {}
    used = set(taken)
    for way in ways:
        name = way.kernel
        if way.in_place:
            name = "_".join([way.kernel, "in_place", *(str(overlay.read) for overlay in way.in_place)])
            while name in used:
                name += "_"
            used.add(name)
        names[way] = name
    return names


def _read_in_place(kernel: PrimFunc, step: Step, overlays: tuple[Overlay, ...]) -> PrimFunc:
    """`kernel` with each load of these operands made one of the element that is about to be written."""
    if not overlays:
        return kernel
    results = {overlay.read: kernel.params[len(step.reads) + overlay.write] for overlay in overlays}

    def from_result(store: BufferStore) -> BufferStore:
        def replaced(load: TensorLoad) -> TensorLoad:
            for read, result in results.items():
                if load.source.same_as(kernel.params[read]) and store.buffer.same_as(result):
                    value = tirx.BufferLoad(result, store.indices)
                    same = str(value.ty.dtype) == str(load.ty.dtype)
                    return value if same else tirx.reinterpret(load.ty.dtype, value)
            return load

        value = tvm_ffi.structural_map(store.value, (TensorLoad, replaced))
        return BufferStore(store.buffer, value, store.indices)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (BufferStore, from_result)))


def _alignments(program: Program, steps: list[Step]) -> list[int]:
    """For each parameter, the bytes its tensor is aligned to in all of these steps."""
    columns = zip(*((*step.reads, *step.writes) for step in steps))
    return [min(_alignment(program, tensor) for tensor in column) for column in columns]


def _alignment(program: Program, tensor: int) -> int:
    """What a tensor in the middle of a buffer is aligned to is its element: more is luck, and not worth a kernel."""
    what = program.tensors[tensor]
    return DTYPE_BYTES[what.dtype] if what.offset % ALIGNMENT else ALIGNMENT


def _aligned(kernel: PrimFunc, alignments: list[int]) -> PrimFunc:
    if all(each == param.ty.data_alignment for each, param in zip(alignments, kernel.params)):
        return kernel
    params = [
        tirx.decl_buffer(param.ty.shape, param.ty.dtype, param.name, data_alignment=each)
        for each, param in zip(alignments, kernel.params)
    ]

    body = replaced(kernel.body, dict(zip(kernel.params, params)))
    return PrimFunc(params, body, kernel.ret_type, attrs=kernel.attrs)
