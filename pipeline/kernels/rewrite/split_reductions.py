"""Split kernels (loop fission) at a value every row of the result needs whole: a gate computed from means, say.

result[c, y, x] = data[c, y, x] * sigmoid(Σ weight[c, k] * mean[k])          one kernel, by TVM's fusion
gate[c] = sigmoid(Σ weight[c, k] * mean[k])                                  needed whole by every row
result[c, y, x] = data[c, y, x] * gate[c]                                    can be computed row by row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc, Stmt

from ...program import Buffer, Loop, Program, Step, Tensor
from ...tir.expressions import reads
from ...tir.index_grid import Unknown
from ...tir.loop_nests import blocks_of, kernel_of, nests_in
from ...tir.memoise import memoise_by_structure
from ...tir.row_window import RowDependence
from ..lower.lower import Lowered


@dataclass(frozen=True)
class _Cut:
    """Two kernels: `first` writes `between`, `then` reads it after its other operands.

    Both take operands of the original kernel by position.
    """

    first: PrimFunc
    first_reads: tuple[int, ...]
    then: PrimFunc
    then_reads: tuple[int, ...]
    between: Var


def split_reductions(lowered: Lowered) -> Lowered:
    """Split every kernel with a sum that each row of its result needs whole."""
    cuts = {
        step.kernel: cut
        for step in lowered.program.steps
        if (kernel := lowered.kernels.get(step.kernel)) and (cut := _cut(kernel)) is not None
    }
    program, kernels = lowered.program, dict(lowered.kernels)
    steps: list[Loop | Step] = []
    for step in program.steps:
        cut = cuts.get(step.kernel)
        if cut is None or len(step.writes) != 1:
            steps.append(step)
            continue
        program, between = _add_tensor(program, step, cut.between)
        name = f"{step.kernel}_sum"
        kernels[name], kernels[f"{step.kernel}_rest"] = cut.first, cut.then
        steps.append(Step(name, tuple(step.reads[n] for n in cut.first_reads), (between,), step.nodes))
        reads = (*(step.reads[n] for n in cut.then_reads), between)
        steps.append(Step(f"{step.kernel}_rest", reads, step.writes, step.nodes))
    program = replace(program, steps=tuple(steps))
    used = {step.kernel for _, step, _ in program.calls()}
    kernels = {name: kernel for name, kernel in sorted(kernels.items()) if name in used}
    return replace(lowered, program=program, kernels=kernels)


def _add_tensor(program: Program, step: Step, like: Var) -> tuple[Program, int]:
    """Add a buffer and tensor for the value between the two parts of `step`; return the tensor's number."""
    shape = tuple(int(extent) for extent in like.ty.shape)
    tensor = Tensor(shape, str(like.ty.dtype), buffer=len(program.buffers))
    result = program.buffers[program.tensors[step.writes[0]].buffer_number]
    buffers = (*program.buffers, Buffer(f"{result.name}_sum", tensor.nbytes))
    return replace(program, tensors=(*program.tensors, tensor), buffers=buffers), len(program.tensors)


@memoise_by_structure
def _cut(kernel: PrimFunc) -> _Cut | None:
    for axis in reversed(range(len(kernel.params[-1].ty.shape))):
        try:
            cut = _cut_along(kernel, axis)
        except Unknown:
            continue
        if cut is not None:
            return cut
    return None


def _cut_along(kernel: PrimFunc, axis: int) -> _Cut | None:
    """Separate blocks that follow the result's rows along `axis` from the rest.

    None if the rest holds no sum.
    """
    blocks, nests = blocks_of(kernel), nests_in(kernel)
    if not any(block.init is not None for block in blocks) or int(kernel.params[-1].ty.shape[axis]) == 1:
        return None
    found = RowDependence(kernel, repeats=True)
    found.start(kernel.params[-1], axis)
    for block in reversed(blocks):
        found.follow(block)
    early = [number for number, block in enumerate(blocks) if block.body.buffer in found.whole]
    late = [number for number in range(len(blocks)) if number not in early]
    if not any(blocks[number].init is not None for number in early):
        return None
    written = [blocks[number].body.buffer for number in early]
    needed = [each for each in written if any(reads(blocks[number].body.value, each) for number in late)]
    if len(needed) != 1:
        return None
    (between,) = needed
    *operands, result = kernel.params
    first_reads, then_reads = (
        tuple(n for n, param in enumerate(operands) if any(reads(blocks[each].body.value, param) for each in part))
        for part in (early, late)
    )
    first = _part(kernel, [*(operands[n] for n in first_reads), between], early, blocks, nests)
    then = _part(kernel, [*(operands[n] for n in then_reads), between, result], late, blocks, nests)
    return _Cut(first, first_reads, then, then_reads, between)


def _part(
    kernel: PrimFunc, params: list[Var], numbers: list[int], blocks: Sequence[SBlock], nests: Sequence[Stmt]
) -> PrimFunc:
    own = [blocks[number].body.buffer for number in numbers]
    own = [each for each in own if not any(each.same_as(param) for param in params)]
    made = kernel_of(params, [nests[number] for number in numbers], own, kernel.attrs)
    return made.without_attr("op_pattern") if made.attrs and "op_pattern" in made.attrs else made
