"""Count products of tensors, without a schedule."""

from __future__ import annotations

import math

from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc

from ..expressions import collect, loads, uses
from .loop_counts import extent_of

_REDUCE = 2


def multiply_adds(kernel: PrimFunc) -> int:
    """Count the multiply-adds of one call of an unscheduled kernel: those of padding, too."""
    blocks = collect(kernel.body, SBlock)
    sums = (block for block in blocks if block.init is not None and isinstance(block.body, BufferStore))
    return sum(
        math.prod(extent_of(axis.dom.extent) for axis in block.iter_vars)
        for block in sums
        if len(walked_tensors(block)) > 1
    )


def walked_tensors(block: SBlock) -> set[Var]:
    """Return the tensors of which a reduction walks other elements with each iteration."""
    summed = [axis.var for axis in block.iter_vars if int(axis.iter_type) == _REDUCE]
    walking = (
        load for load in loads(block.body.value) if any(uses(index, var) for index in _long(load) for var in summed)
    )
    return {load.source for load in walking} - {block.body.buffer}


def _long(load: TensorLoad) -> list[Expr]:
    """Return the indices of dimensions of more than one element."""
    return [index for index, extent in zip(load.indices, load.source.ty.shape, strict=True) if int(extent) > 1]
