"""Count products of tensors, and distinguish them from other reductions, without a schedule: most kernels that reduce are convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc

from ..expressions import collect, loads, uses
from ..index_grid import Unknown
from ..loop_nests import blocks_of
from .loop_counts import extent_of

_REDUCE = 2


def multiplies_tensors(kernel: PrimFunc) -> bool:
    """Return whether a reduction of `kernel` walks two tensors, however its producers are inlined; False if unknown."""
    try:
        blocks = blocks_of(kernel)
    except Unknown:
        return False
    if not all(isinstance(block.body, BufferStore) for block in blocks):
        return False  # several results at once, as of an ArgMax
    writers = {block.body.buffer: block for block in blocks}
    return any(block.init is not None and len(_walked_tensors(block, writers)) > 1 for block in blocks)


def multiply_adds(kernel: PrimFunc) -> int:
    """Count the multiply-adds of one call of an unscheduled kernel: those of padding, too."""
    blocks = collect(kernel.body, SBlock)
    sums = (block for block in blocks if block.init is not None and isinstance(block.body, BufferStore))
    return sum(
        math.prod(extent_of(axis.dom.extent) for axis in block.iter_vars)
        for block in sums
        if len({load.source for load in _walking(block)} - {block.body.buffer}) > 1
    )


def _walked_tensors(block: SBlock, writers: Mapping[Var, SBlock]) -> set[Var]:
    """Return the tensors of which a reduction walks other elements with each iteration."""
    found = (_origin(load.source, writers) for load in _walking(block))
    return {each for each in found if each is not None and not each.same_as(block.body.buffer)}


def _walking(block: SBlock) -> list[TensorLoad]:
    """List the loads of a reduction that walk other elements with each iteration."""
    summed = [axis.var for axis in block.iter_vars if int(axis.iter_type) == _REDUCE]
    return [
        load for load in loads(block.body.value) if any(uses(index, var) for index in _long(load) for var in summed)
    ]


def _origin(tensor: Var, writers: Mapping[Var, SBlock]) -> Var | None:
    """Return the tensor read once producers are inlined; None if they may read several, or not all of their axes."""
    writer = writers.get(tensor)
    if writer is None or writer.init is not None:
        return tensor
    read = loads(writer.body.value)
    axes = [axis.var for axis in writer.iter_vars if extent_of(axis.dom.extent) > 1]
    if not read or not all(load.source.same_as(read[0].source) for load in read):
        return None
    if not all(any(uses(index, var) for index in _long(load)) for load in read for var in axes):
        return None
    return _origin(read[0].source, writers)


def _long(load: TensorLoad) -> list[Expr]:
    """Return the indices of dimensions of more than one element."""
    return [index for index, extent in zip(load.indices, load.source.ty.shape, strict=True) if int(extent) > 1]
