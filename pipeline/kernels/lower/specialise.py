"""Specialise the kernels of a planned program to the addresses of their operands and results.

An operand that aliases a result is read through the result's own pointer. This keeps TVM's promise to LLVM
(`tirx.noalias`: different pointers, different memory), so the kernel's loops are still vectorized. Tensors in the
middle of a buffer are aligned to their elements, not to the 64 bytes TVM counts on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, PrimFunc

from ...memory import ALIGNMENT
from ...program import DTYPE_BYTES, Loop, Overlay, Program, Step, View
from ...program.free_name import free_name
from ...tir.expressions import replaced
from ...tir.in_place.analysis import is_kept
from ...tir.loop_nests import flat_index, int64, move_accesses
from ...tir.row_window import takes_a_row, tensors_of
from ..schedule.candidates import is_scheduled
from .lower import Lowered


@dataclass(frozen=True)
class KernelVariant:
    """Name a kernel and the operands it reads in place."""

    kernel: str
    in_place: tuple[Overlay, ...]


def specialise_kernels(lowered: Lowered) -> Lowered:
    """Create one kernel per variant its steps call, in loops too; drop kernels no step calls."""
    program = put_slices_in_place(lowered.program)
    calls: dict[KernelVariant, list[list[int]]] = {}
    reads: dict[KernelVariant, int] = {}
    for variant, step, alignments in _calls(program, _alignments(program)):
        calls.setdefault(variant, []).append([alignments[tensor] for tensor in (*step.reads, *step.writes)])
        reads[variant] = len(step.reads)
    names = _names(calls, lowered.kernels)
    kernels = {}
    for variant, name in names.items():
        kernel = _read_in_place(lowered.kernels[variant.kernel], reads[variant], variant.in_place)
        kernels[name] = _align(kernel, [min(column) for column in zip(*calls[variant])])
    special = program.with_calls(lambda owner, step: replace(step, kernel=names[variant_of(owner, step)]))
    return replace(lowered, program=special, kernels=dict(sorted(kernels.items())))


def put_slices_in_place(program: Program) -> Program:
    """Merge an operand of a loop with the result in its place into one buffer of the body.

    Copies between the two go away, and leave views.
    """
    return replace(
        program,
        steps=tuple(_put_in_place(program, step) if isinstance(step, Loop) else step for step in program.steps),
    )


def _put_in_place(program: Program, loop: Loop) -> Loop:
    body, tensors, buffers = loop.body, list(loop.body.tensors), list(loop.body.buffers)
    for overlay in loop.in_place:
        if (not overlay.shift or loop.is_numbered) and program.is_in_place(loop, overlay):
            result = next(each for each in loop.windows if each.place == len(loop.reads) + overlay.write)
            for window in loop.windows:
                if window.place == overlay.read and (window.offset, window.stride) == (result.offset, result.stride):
                    moved = replace(tensors[window.tensor], buffer=tensors[result.tensor].buffer, offset=overlay.shift)
                    tensors[window.tensor] = moved
                    own = buffers[moved.buffer_number]
                    buffers[moved.buffer_number] = replace(own, nbytes=max(own.nbytes, overlay.shift + moved.nbytes))
    used = {each.buffer for each in tensors}
    body = replace(
        body,
        tensors=tuple(tensors),
        buffers=tuple(each if n in used else replace(each, nbytes=0) for n, each in enumerate(buffers)),
    )
    gone = [step for step in body.steps if step.copies and all(body.is_in_place(step, each) for each in step.copies)]
    views = tuple(
        View(step.writes[each.write], step.reads[each.read], each.shift, elided=True)
        for step in gone
        for each in step.copies
    )
    steps = tuple(step for step in body.steps if step not in gone)
    return replace(loop, body=put_slices_in_place(replace(body, steps=steps, views=body.views + views)))


def _calls(program: Program, alignments: Sequence[int]) -> Iterator[tuple[KernelVariant, Step, Sequence[int]]]:
    """Yield the variant of each call, its step, and the bytes that tensors around it are aligned to."""
    for step in program.steps:
        if isinstance(step, Loop):
            yield from _calls(
                step.body, _inner_alignments(step, [alignments[tensor] for tensor in (*step.reads, *step.results)])
            )
        else:
            yield variant_of(program, step), step, alignments


def variant_of(program: Program, step: Step) -> KernelVariant:
    return KernelVariant(step.kernel, tuple(overlay for overlay in step.in_place if program.is_in_place(step, overlay)))


def _names(variants: Iterable[KernelVariant], taken: Iterable[str]) -> dict[KernelVariant, str]:
    """Name each variant: the kernel's own name if nothing is in place, else a new one."""
    names: dict[KernelVariant, str] = {}
    used = set(taken)
    for variant in variants:
        name = variant.kernel
        if variant.in_place:
            name = free_name(
                "_".join([variant.kernel, "in_place", *(str(overlay.read) for overlay in variant.in_place)]), used
            )
            used.add(name)
        names[variant] = name
    return names


def _read_in_place(kernel: PrimFunc, reads: int, overlays: tuple[Overlay, ...]) -> PrimFunc:
    """Replace loads of in-place operands by loads of the result.

    What goes to the place an element has there is read by the index of that place. All else, of other results and buffers of
    the kernel's own too, is read by the operand's: LLVM is told that parameters do not overlap.
    """
    if not overlays:
        return kernel
    params = tensors_of(kernel)
    results = {params[each.read]: params[reads + each.write] for each in overlays}
    shifts = {params[each.read]: each.shift for each in overlays}

    def place(operand: Var, indices: Sequence[Expr]) -> list[Expr]:
        """Return the indices in the result of an element of an operand."""
        result = results[operand]
        elements = shifts[operand] // DTYPE_BYTES[str(result.ty.dtype)]
        return _same_element(indices, operand.ty.shape, result.ty.shape, elements)

    if is_scheduled(kernel) or takes_a_row(kernel):
        return kernel.with_body(move_accesses(kernel.body, results, place))
    kept = {
        params[each.read] for each in overlays if is_kept(kernel, each.read, results[params[each.read]], each.shift)
    }

    def from_result(store: BufferStore) -> BufferStore:
        def read_result(load: TensorLoad) -> Expr:
            result = results.get(load.source)
            if result is None:
                return load
            if load.source in kept or not store.buffer.same_as(result):
                return tirx.BufferLoad(result, place(load.source, load.indices))
            value = tirx.BufferLoad(result, store.indices)
            same = str(value.ty.dtype) == str(load.ty.dtype)
            return value if same else tirx.reinterpret(load.ty.dtype, value)

        value = tvm_ffi.structural_map(store.value, (TensorLoad, read_result))
        return BufferStore(store.buffer, value, store.indices)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, (BufferStore, from_result)))


def _same_element(indices: Sequence[Expr], shape: Sequence[Expr], other: Sequence[Expr], shift: int = 0) -> list[Expr]:
    """Return the indices, in a compact buffer of another shape, of an element, `shift` elements in.

    All but the last are 0, and the last may run past the end of its line: quotients and remainders by the extents would
    stay in the loops, as no simplifier joins all of them again.
    """
    if list(map(int, shape)) == list(map(int, other)) and not shift:
        return list(indices)
    flat = flat_index(shape, indices)
    return [*(int64(0) for _ in other[1:]), flat + int64(shift) if shift else flat] if len(other) else []


def _alignments(program: Program) -> list[int]:
    """Return by tensor the element size at an unaligned offset, else ALIGNMENT.

    Better alignment in the middle of a buffer is luck, and not worth a kernel.
    """
    return [DTYPE_BYTES[each.dtype] if each.offset % ALIGNMENT else ALIGNMENT for each in program.tensors]


def _inner_alignments(loop: Loop, around: Sequence[int]) -> list[int]:
    """Return the bytes that tensors of a loop's body are aligned to in all trips; `around` are those of its operands and results."""
    found = _alignments(loop.body)
    for window in loop.windows:
        if window.offset % ALIGNMENT or window.stride % ALIGNMENT:
            found[window.tensor] = DTYPE_BYTES[loop.body.tensors[window.tensor].dtype]
        found[window.tensor] = min(found[window.tensor], around[window.place])
    return found


def _align(kernel: PrimFunc, alignments: list[int]) -> PrimFunc:
    aligned = {
        param: tirx.decl_buffer(param.ty.shape, param.ty.dtype, param.name, data_alignment=each)
        for each, param in zip(alignments, tensors_of(kernel))
        if each != param.ty.data_alignment
    }
    if not aligned:
        return kernel
    params = [aligned.get(param, param) for param in kernel.params]
    return PrimFunc(params, replaced(kernel.body, aligned), kernel.ret_type, attrs=kernel.attrs)
