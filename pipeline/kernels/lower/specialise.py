"""Specialise the kernels of a planned program to the addresses of their operands and results.

An operand that aliases a result is read through the result's own pointer. This keeps TVM's promise to LLVM
(`tirx.noalias`: different pointers, different memory), so the kernel's loops are still vectorized. Tensors in the
middle of a buffer are aligned to their elements, not to the 64 bytes TVM counts on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, TensorRegion, Var
from tvm.tirx import BufferStore, PrimFunc

from ...memory import ALIGNMENT
from ...program import DTYPE_BYTES, Overlay, Program, Step
from ...tir.expressions import replaced
from ...tir.in_place.analysis import is_kept
from ...tir.loop_nests import all_of, flat_index, int64
from ..schedule.candidates import is_scheduled
from ..schedule.run_iterations import is_loop
from .lower import Lowered


@dataclass(frozen=True)
class KernelVariant:
    """Name a kernel and the operands it reads in place."""

    kernel: str
    in_place: tuple[Overlay, ...]


def specialise_kernels(lowered: Lowered) -> Lowered:
    """Create one kernel per variant its steps call; drop kernels no step calls."""
    program = lowered.program
    variants = [variant_of(program, step) for step in program.steps]
    names = _names(dict.fromkeys(variants), lowered.kernels)
    kernels = {}
    for variant, name in names.items():
        steps = [step for step, called in zip(program.steps, variants) if called == variant]
        kernel = lowered.kernels[variant.kernel]
        kernel = _read_in_place(kernel, steps[0], variant.in_place)
        kernels[name] = _aligned(kernel, _alignments(program, steps))
    special = tuple(replace(step, kernel=names[variant]) for step, variant in zip(program.steps, variants))
    return replace(lowered, program=replace(program, steps=special), kernels=dict(sorted(kernels.items())))


def variant_of(program: Program, step: Step) -> KernelVariant:
    return KernelVariant(step.kernel, tuple(overlay for overlay in step.in_place if program.is_in_place(step, overlay)))


def _names(variants: Iterable[KernelVariant], taken: Iterable[str]) -> dict[KernelVariant, str]:
    """Name each variant: the kernel's own name if nothing is in place, else a new one."""
    names: dict[KernelVariant, str] = {}
    used = set(taken)
    for variant in variants:
        name = variant.kernel
        if variant.in_place:
            name = "_".join([variant.kernel, "in_place", *(str(overlay.read) for overlay in variant.in_place)])
            while name in used:
                name += "_"
            used.add(name)
        names[variant] = name
    return names


def _read_in_place(kernel: PrimFunc, step: Step, overlays: tuple[Overlay, ...]) -> PrimFunc:
    """Replace loads of in-place operands by loads of the result.

    What goes to the place an element has there is read by the index of that place. All else, of other results and buffers of
    the kernel's own too, is read by the operand's: LLVM is told that parameters do not overlap.
    """
    if not overlays:
        return kernel
    results = {overlay.read: kernel.params[len(step.reads) + overlay.write] for overlay in overlays}
    shifts = {overlay.read: overlay.shift for overlay in overlays}
    if is_scheduled(kernel) or is_loop(kernel):
        return _read_rows_in_place(kernel, results, shifts)
    kept = {each.read for each in overlays if is_kept(kernel, each.read, results[each.read], each.shift)}

    def from_result(store: BufferStore) -> BufferStore:
        def replaced(load: TensorLoad) -> TensorLoad:
            for read, result in results.items():
                if load.source.same_as(kernel.params[read]):
                    if read in kept or not store.buffer.same_as(result):
                        return _own_element(load, result, shifts[read])
                    value = tirx.BufferLoad(result, store.indices)
                    same = str(value.ty.dtype) == str(load.ty.dtype)
                    return value if same else tirx.reinterpret(load.ty.dtype, value)
            return load

        value = tvm_ffi.structural_map(store.value, (TensorLoad, replaced))
        return BufferStore(store.buffer, value, store.indices)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (BufferStore, from_result)))


def _own_element(load: TensorLoad, result: Var, shift: int) -> TensorLoad:
    """Load the element of an operand that lies `shift` bytes into a result."""
    elements = shift // DTYPE_BYTES[str(result.ty.dtype)]
    return tirx.BufferLoad(result, _same_element(load.indices, load.source.ty.shape, result.ty.shape, elements))


def _read_rows_in_place(kernel: PrimFunc, results: Mapping[int, Var], shifts: Mapping[int, int]) -> PrimFunc:
    """Load an in-place operand of a streaming region, or of a loop, from its byte in the result."""

    def replaced(load: TensorLoad) -> TensorLoad:
        for read, result in results.items():
            if load.source.same_as(kernel.params[read]):
                return _own_element(load, result, shifts[read])
        return load

    def widened(region: TensorRegion) -> TensorRegion:
        result = next((result for read, result in results.items() if region.source.same_as(kernel.params[read])), None)
        return region if result is None else all_of(result)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, [(TensorLoad, replaced), (TensorRegion, widened)]))


def _same_element(indices: Sequence[Expr], shape: Sequence[Expr], other: Sequence[Expr], shift: int = 0) -> list[Expr]:
    """Return the indices, in a compact buffer of another shape, of an element, `shift` elements in.

    All but the last are 0, and the last may run past the end of its line: quotients and remainders by the extents would
    stay in the loops, as no simplifier joins all of them again.
    """
    if list(map(int, shape)) == list(map(int, other)) and not shift:
        return list(indices)
    flat = flat_index(shape, indices)
    return [*(int64(0) for _ in other[1:]), flat + int64(shift) if shift else flat] if len(other) else []


def _alignments(program: Program, steps: list[Step]) -> list[int]:
    """Compute per parameter the bytes its tensor is aligned to in all of these steps."""
    columns = zip(*((*step.reads, *step.writes) for step in steps))
    return [min(_alignment(program, tensor) for tensor in column) for column in columns]


def _alignment(program: Program, tensor: int) -> int:
    """Return the element size for a tensor at an unaligned offset, else ALIGNMENT.

    Better alignment in the middle of a buffer is luck, and not worth a kernel.
    """
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
