"""Narrow the sums of a kernel to the elements that its later blocks read.

    for x in 0…5: sum[x] = Σ w[k] · data[x, k]; for x in 0…4: y[x] = relu(sum[x + 1])            a slice behind it

    for x in 0…4: sum[x] = Σ w[k] · data[x + 1, k]; for x in 0…4: y[x] = relu(sum[x])

Nothing is computed in vain, and the rules meet sums and epilogues over the same axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import Expr, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ....tir.expressions import loads, replaced
from ....tir.loop_nests import (
    analyzer_of,
    change_nest,
    covers,
    fresh_axes,
    int64,
    kernel_of,
    move_accesses,
    reshaped,
    simplified,
)
from ....tir.switches import switchable
from .on_blocks import on_blocks

#: first element and number of elements read, by dimension
_Box = list[tuple[int, int]]


@switchable
@on_blocks
def narrow_sums(kernel: PrimFunc, blocks: Sequence[SBlock]) -> PrimFunc | None:
    """Return `kernel` with internal reductions that compute no element outside the box that is read."""
    boxes = {buffer: box for buffer in kernel.body.block.alloc_buffers if (box := _box(blocks, buffer)) is not None}
    if not boxes:
        return None
    shapes = {buffer: [count for _, count in box] for buffer, box in boxes.items()}
    made = {buffer: reshaped(buffer, shape) for buffer, shape in shapes.items()}
    nests = [_nest(block, boxes, made) for block in blocks]
    own = [made.get(buffer, buffer) for buffer in kernel.body.block.alloc_buffers]
    return kernel_of(kernel.params, nests, own, kernel.attrs)


def _box(blocks: Sequence[SBlock], buffer: Var) -> _Box | None:
    """Return the part of a reduction's result that other blocks read; None if it is all, or of another form."""
    writers = [block for block in blocks if block.body.buffer.same_as(buffer)]
    shape = list(map(int, buffer.ty.shape))
    if len(writers) != 1 or writers[0].init is None or not covers(writers[0]):
        return None
    first, last = shape[:], [-1] * len(shape)
    for block in blocks:
        if block is writers[0]:
            continue
        analyzer = analyzer_of(block.iter_vars)
        for load in loads(block.body.value):
            if not load.source.same_as(buffer):
                continue
            for dimension, index in enumerate(load.indices):
                bound = analyzer.const_int_bound(index)
                first[dimension] = max(0, min(first[dimension], int(bound.min_value)))
                last[dimension] = min(shape[dimension] - 1, max(last[dimension], int(bound.max_value)))
    box = [(low, high - low + 1) for low, high in zip(first, last)]
    return box if box != [(0, extent) for extent in shape] and all(count > 0 for _, count in box) else None


def _nest(block: SBlock, boxes: dict[Var, _Box], made: dict[Var, Var]) -> Stmt:
    """Return the loops of a block over the part of its result that is read."""
    written, analyzer = block.body.buffer, analyzer_of(block.iter_vars)
    parts = zip(block.body.indices, boxes.get(written, ()))
    part = {index: box for index, box in parts if isinstance(index, Var)}
    axes, own = fresh_axes(block, {axis: count for axis, (_, count) in part.items()})
    moved = {old: new + int64(part[old][0]) if part.get(old, (0, 0))[0] else new for old, new in own.items()}

    def place(buffer: Var, indices: Sequence[Expr]) -> list[Expr]:
        if buffer.same_as(written):
            return [replaced(index, own) for index in indices]
        first = [low for low, _ in boxes[buffer]]
        return [simplified(analyzer, index - int64(low)) if low else index for index, low in zip(indices, first)]

    def store(each: BufferStore) -> BufferStore:
        value = replaced(move_accesses(each.value, made, place), moved)
        return BufferStore(made.get(written, written), value, [replaced(index, own) for index in each.indices])

    return change_nest(block, axes, store)
