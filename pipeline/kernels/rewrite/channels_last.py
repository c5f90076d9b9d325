"""Rewrite kernels to read and write activations with channels last.

    result[n, c, y, x]  ─►  result[n, y, x, c]       any tensor of three axes or more: axis 1 goes to the end

A convolution may read planes and write pixels, so no kernel only moves data from one layout to the other. Weights per
channel (of a depthwise convolution) are repacked with channels last too.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from tvm.ir import Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, IterVar, PrimFunc

from ...errors import SequenceError
from ...program import Program
from ...program.free_name import free_name
from ...tir.expressions import loads, uses
from ...tir.index_grid import NoMatch
from ...tir.loop_nests import blocks_of, change_nest, kernel_of, move_accesses, reshaped
from ..lower.lower import Lowered
from ..schedule.candidates import is_scheduled
from ..weights.read_repacked import read_repacked
from ..weights.repack import Repack, repack_by_number, repackable_parameters

CHANNELS = 1
_AGAIN = "Run `passfit tune` again."
_Item = TypeVar("_Item")


def move_channels_last(items: Sequence[_Item]) -> list[_Item]:
    """Move the channel axis's item to the end of a list."""
    return [*items[:CHANNELS], *items[CHANNELS + 1 :], items[CHANNELS]]


def movable_results(program: Program) -> dict[int, int]:
    """Map each tensor that may have channels last to the step that writes it.

    Such a tensor is the only result of one step, the only tenant of its buffer, no input or output of the model, and
    its order in memory changes.
    """
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


def digest_of(program: Program) -> str:
    """Hash kernels and tensors of a program: equal whatever the values of the weights."""
    steps = [(step.kernel, step.reads, step.writes) for step in program.steps]
    return hashlib.sha256(repr((steps, program.tensors)).encode()).hexdigest()[:16]


def channels_last(lowered: Lowered, steps: Iterable[int]) -> Lowered:
    """Store the results of `steps`, by number, with channels last.

    Raises SequenceError for a result that cannot, or a kernel unable to read it so.
    """
    program = lowered.program
    writers = {step: tensor for tensor, step in movable_results(program).items()}
    for number in sorted(steps):
        if number not in writers:
            raise SequenceError(f"The result of step {number} cannot lie with channels last.", _AGAIN)
    chosen = {writers[number] for number in steps}
    own = own_weights(program)
    made: dict[tuple[str, frozenset[int]], tuple[str, tuple[Repack, ...]]] = {}
    kernels, found = dict(lowered.kernels), []
    repacks: dict[int, Repack] = {}
    for number, step in enumerate(program.steps):
        places = frozenset(n for n, tensor in enumerate((*step.reads, *step.writes)) if tensor in chosen)
        if not places:
            found.append(step)
            continue
        if (step.kernel, places) not in made:
            try:
                if step.kernel not in lowered.kernels:
                    raise NoMatch("it is a loop")
                kernel, asked = with_channels_last(lowered.kernels[step.kernel], places, own[step.kernel])
            except NoMatch as error:
                raise SequenceError(f"Step {number} cannot have channels last: {error}.", _AGAIN) from error
            name = free_name(f"{step.kernel}_last", kernels)
            made[step.kernel, places], kernels[name] = (name, asked), kernel
        name, asked = made[step.kernel, places]
        repacks |= {program.tensors[step.reads[each.parameter]].weight_number: each for each in asked}
        found.append(replace(step, kernel=name))
    tensors = tuple(
        replace(tensor, shape=tuple(move_channels_last(tensor.shape))) if number in chosen else tensor
        for number, tensor in enumerate(program.tensors)
    )
    used = {step.kernel for _, step, _ in replace(program, steps=tuple(found)).calls()}
    kernels = {name: kernel for name, kernel in sorted(kernels.items()) if name in used}
    program, weights = repack_by_number(replace(program, steps=tuple(found), tensors=tensors), lowered.weights, repacks)
    return replace(lowered, program=program, kernels=kernels, weights=weights, last=lowered.last | chosen)


def own_weights(program: Program) -> dict[str, frozenset[int]]:
    """Find, per kernel, the parameters that are always weights read by one step alone, once."""
    readers = Counter(owner.tensors[tensor].weight for owner, step, _ in program.calls() for tensor in step.reads)
    found = repackable_parameters(program)
    for owner, step, _ in program.calls():
        found[step.kernel] &= {n for n, tensor in enumerate(step.reads) if readers[owner.tensors[tensor].weight] == 1}
    return defaultdict(frozenset, found)


def with_channels_last(
    kernel: PrimFunc, places: Collection[int], weights: frozenset[int] = frozenset()
) -> tuple[PrimFunc, tuple[Repack, ...]]:
    """Rewrite unscheduled `kernel` with the parameters at these positions channels last; loops follow the result.

    Returns also the repacks it wants for the parameters `weights`. Raises NoMatch for a kernel of another form.
    """
    if is_scheduled(kernel):
        raise NoMatch("its kernel is scheduled already")
    repacks: tuple[Repack, ...] = ()
    if len(kernel.params) - 1 in places:
        repacks = tuple(each for block in blocks_of(kernel) for each in _repacks_by_channel(kernel, block, weights))
    for each in repacks:
        kernel = read_repacked(kernel, each.parameter, each)
    blocks = blocks_of(kernel)
    moved = {kernel.params[place]: True for place in places}
    made = {param: _move(param) if param in moved else param for param in kernel.params}
    own = []
    for block in blocks:
        buffer = block.body.buffer
        if buffer not in made:
            if _follows(block, kernel.params[-1], moved) and len(buffer.ty.shape) > CHANNELS + 1:
                moved[buffer] = True
            made[buffer] = _move(buffer) if buffer in moved else buffer
            own.append(made[buffer])
    nests = [_nest(block, moved, made) for block in blocks]
    return kernel_of([made[param] for param in kernel.params], nests, own, kernel.attrs), repacks


def _repacks_by_channel(kernel: PrimFunc, block: SBlock, weights: frozenset[int]) -> Iterator[Repack]:
    """Yield channels-last repacks for a reduction whose operands all depend on the channel."""
    written = list(block.body.indices)
    if block.init is None or len(written) <= CHANNELS + 1:
        return
    channel = written[CHANNELS]
    terms = [load for load in loads(block.body.value) if not load.source.same_as(block.body.buffer)]
    if not isinstance(channel, Var) or not all(any(uses(index, channel) for index in load.indices) for load in terms):
        return
    for number in sorted(weights):
        for load in terms:
            axes = [axis for axis, index in enumerate(load.indices) if index.same_as(channel)]
            if load.source.same_as(kernel.params[number]) and len(axes) == 1:
                yield Repack(number, axes[0], int(load.source.ty.shape[axes[0]]))
                break


def _differs(shape: Sequence[int]) -> bool:
    """Return whether channels last is another order in memory."""
    others = [extent for extent in shape[CHANNELS + 1 :] if extent > 1]
    return len(shape) > CHANNELS + 1 and shape[CHANNELS] > 1 and bool(others)


def _follows(block: SBlock, result: Var, moved: dict[Var, bool]) -> bool:
    """Return whether an intermediate moves too: sums follow the result, other blocks the buffers they read."""
    if block.init is not None:
        return result in moved
    rank = len(block.body.buffer.ty.shape)
    read = [load.source for load in loads(block.body.value) if len(load.source.ty.shape) == rank]
    return any(each in moved for each in read)


def _move(buffer: Var) -> Var:
    return reshaped(buffer, move_channels_last([int(extent) for extent in buffer.ty.shape]))


def _nest(block: SBlock, moved: dict[Var, bool], made: dict[Var, Var]) -> object:
    def placed(buffer: Var, indices: Sequence) -> list:
        if len(indices) != len(buffer.ty.shape):
            raise NoMatch("an access has another number of indices than its buffer")
        return move_channels_last(list(indices)) if buffer in moved else list(indices)

    def store(each: BufferStore) -> BufferStore:
        return move_accesses(each, made, placed)

    axes = list(block.iter_vars)
    if block.body.buffer in moved:
        axes = _as_written(axes, store(block.body))
    return change_nest(block, axes, store)


def _as_written(axes: list[IterVar], store: BufferStore) -> list[IterVar]:
    """Order the axes that index the store as they do; the others keep their places."""
    places = [n for n, axis in enumerate(axes) if any(index.same_as(axis.var) for index in store.indices)]
    order = [axis for index in store.indices for axis in axes if axis.var.same_as(index)]
    for place, axis in zip(places, order):
        axes[place] = axis
    return axes
