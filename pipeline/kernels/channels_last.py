"""Kernels that read and write activations with channels last, pixel by pixel: a convolution may read planes and write
pixels, so that no kernel only moves data from one layout to the other.

    result[n, c, y, x]  ─►  result[n, y, x, c]       any tensor of three axes or more: axis 1 goes to the end
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, IterVar, PrimFunc

from ..errors import SequenceError
from ..graph import Program
from .expressions import loads
from .grid import Unknown
from .lowering import Lowered
from .nests import blocks_of, kernel_of, nest_of, reshaped
from .scheduling import is_scheduled

_CHANNELS = 1
_Item = TypeVar("_Item")


def turned(items: Sequence[_Item]) -> list[_Item]:
    """What belongs to each axis, with that of the channels at the end."""
    return [*items[:_CHANNELS], *items[_CHANNELS + 1 :], items[_CHANNELS]]


def turnable(program: Program) -> dict[int, int]:
    """The tensors that may lie with channels last, where that is another order in memory, each with the step whose only
    result it is: those that have a buffer to themselves, and are no input or output of the model."""
    tenants: dict[int | None, list[int]] = {}
    for number, tensor in enumerate(program.tensors):
        tenants.setdefault(tensor.buffer, []).append(number)
    ports = {port.tensor for port in (*program.inputs, *program.outputs)}
    found = {}
    for number, step in enumerate(program.steps):
        tensor = program.tensors[step.writes[0]]
        alone = len(step.writes) == 1 and tenants[tensor.buffer] == [step.writes[0]] and not tensor.offset
        if alone and step.writes[0] not in ports and _differs(tensor.shape):
            found[step.writes[0]] = number
    writes = [tensor for step in program.steps for tensor in step.writes]
    return {tensor: step for tensor, step in found.items() if writes.count(tensor) == 1}


def channels_last(lowered: Lowered, steps: Collection[int]) -> Lowered:
    """`lowered` with the results of these steps, by their numbers, in that layout. Raises SequenceError where one of
    them cannot be, or a kernel that reads it cannot read it so."""
    program = lowered.program
    writers = {step: tensor for tensor, step in turnable(program).items()}
    for number in steps:
        if number not in writers:
            raise SequenceError(f"The result of step {number} cannot lie with channels last.", "Tune again.")
    chosen = {writers[number] for number in steps}
    made: dict[tuple[str, frozenset[int]], str] = {}
    kernels, found = dict(lowered.kernels), []
    for number, step in enumerate(program.steps):
        places = frozenset(n for n, tensor in enumerate((*step.reads, *step.writes)) if tensor in chosen)
        if places and (step.kernel, places) not in made:
            try:
                kernel = with_channels_last(lowered.kernels[step.kernel], places)
            except Unknown as error:
                raise SequenceError(f"Step {number} cannot have channels last: {error}.", "Tune again.") from error
            name = f"{step.kernel}_last"
            while name in kernels:
                name += "_"
            made[step.kernel, places], kernels[name] = name, kernel
        found.append(replace(step, kernel=made[step.kernel, places]) if places else step)
    tensors = tuple(
        replace(tensor, shape=tuple(turned(tensor.shape))) if number in chosen else tensor
        for number, tensor in enumerate(program.tensors)
    )
    used = {step.kernel for step in found}
    kernels = {name: kernel for name, kernel in sorted(kernels.items()) if name in used}
    return replace(lowered, program=replace(program, steps=tuple(found), tensors=tensors), kernels=kernels)


def with_channels_last(kernel: PrimFunc, places: Collection[int]) -> PrimFunc:
    """`kernel`, not scheduled yet, with the parameters at these positions in that layout; it walks its results as they
    lie. Raises Unknown where it is of another form."""
    if is_scheduled(kernel):
        raise Unknown("its kernel is scheduled already")
    blocks = blocks_of(kernel)
    moved = {kernel.params[place]: True for place in places}
    made = {param: _moved(param) if param in moved else param for param in kernel.params}
    own = []
    for block in blocks:
        buffer = block.body.buffer
        if buffer not in made:
            if _follows(block, kernel.params[-1], moved) and len(buffer.ty.shape) > _CHANNELS + 1:
                moved[buffer] = True
            made[buffer] = _moved(buffer) if buffer in moved else buffer
            own.append(made[buffer])
    nests = [_nest(block, moved, made) for block in blocks]
    return kernel_of([made[param] for param in kernel.params], nests, own, kernel.attrs)


def _differs(shape: Sequence[int]) -> bool:
    """Whether channels last is another order in memory."""
    others = [extent for extent in shape[_CHANNELS + 1 :] if extent > 1]
    return len(shape) > _CHANNELS + 1 and shape[_CHANNELS] > 1 and bool(others)


def _follows(block: SBlock, result: Var, moved: dict[Var, bool]) -> bool:
    """Whether what the block makes on the way lies so too: sums as the result they end in, the rest as what it reads."""
    if block.init is not None:
        return result in moved
    rank = len(block.body.buffer.ty.shape)
    read = [load.source for load in loads(block.body.value) if len(load.source.ty.shape) == rank]
    return any(each in moved for each in read)


def _moved(buffer: Var) -> Var:
    return reshaped(buffer, turned([int(extent) for extent in buffer.ty.shape]))


def _nest(block: SBlock, moved: dict[Var, bool], made: dict[Var, Var]) -> object:
    def placed(buffer: Var, indices: Sequence) -> list:
        if len(indices) != len(buffer.ty.shape):
            raise Unknown("an access by fewer indices than axes")
        return turned(list(indices)) if buffer in moved else list(indices)

    def load(each: TensorLoad) -> TensorLoad:
        return tirx.BufferLoad(made.get(each.source, each.source), placed(each.source, each.indices))

    def store(each: BufferStore) -> BufferStore:
        value = tvm_ffi.structural_map(each.value, [(TensorLoad, load)])
        return BufferStore(made[each.buffer], value, placed(each.buffer, each.indices))

    body = store(block.body)
    axes = list(block.iter_vars)
    if block.body.buffer in moved:
        axes = _as_written(axes, body)
    return nest_of(axes, block.name_hint, body, None if block.init is None else store(block.init))


def _as_written(axes: list[IterVar], store: BufferStore) -> list[IterVar]:
    """The axes that are indices of what is written in the order they are so, where they stand; others stay."""
    places = [n for n, axis in enumerate(axes) if any(index.same_as(axis.var) for index in store.indices)]
    order = [axis for index in store.indices for axis in axes if axis.var.same_as(index)]
    for place, axis in zip(places, order):
        axes[place] = axis
    return axes
