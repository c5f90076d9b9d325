"""Walk transposed operands in blocks that use up each line of a cache.

    for i, j: y[i, j] = x[j, i]                                        512 lines of x for each line of y

    for I, J in blocks of 16 by 16: for i in I, j in J: y[i, j] = x[j, i]       16 lines of both at a time
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from tvm.ir import Expr, Var
from tvm.s_tir import SBlock
from tvm.tirx import BufferStore, PrimFunc

from ....tir.expressions import has_condition, loads
from ....tir.inlining import REFUSALS, new_schedule, only_block, scheduled_kernel
from ..tile_size import divisors

#: side of a block: the floats of a line of a cache
_SIDE = 16
#: least side that pays
_LEAST = 8
#: bytes after which places in the nearest cache repeat, and how many lines with one place it holds
_PERIOD, _WAYS = 4096, 8


def block_transposes(kernel: PrimFunc) -> PrimFunc | None:
    """Block the loops of an unscheduled `kernel` without reduction; None if it transposes nothing large."""
    schedule = new_schedule(kernel)
    try:
        block, loops = only_block(schedule)
        pair = None if block is None else _transposed(schedule.get(block))
        if pair is None:
            return None
        sides = [divisors(int(schedule.get(loops[axis]).extent), _SIDE)[-1] for axis in pair]
        if min(sides) < _LEAST:
            return None
        (outer, inner), (outer_last, last) = (schedule.split(loops[axis], [None, side]) for axis, side in zip(pair, sides))
        others = [loop for number, loop in enumerate(loops) if number not in pair]
        schedule.reorder(*others, outer, outer_last, inner, last)
    except REFUSALS:
        return None
    return scheduled_kernel(schedule, kernel)


def _transposed(block: SBlock) -> tuple[int, int] | None:
    """Find the axes along which an operand and the result run in memory.

    None if they are one, or the nearest cache holds the lines of the operand that meet a line of the result.
    """
    store, axes = block.body, [axis.var for axis in block.iter_vars]
    if not isinstance(store, BufferStore) or block.init is not None or has_condition(store.value):
        return None
    last = _last(axes, store.indices)
    if last is None:
        return None
    for load in loads(store.value):
        along, shape = _last(axes, load.indices), [int(extent) for extent in load.source.ty.shape]
        steps = [prod(shape[n + 1 :]) for n, index in enumerate(load.indices[:-1]) if axes[last].same_as(index)]
        if along in (None, last) or len(steps) != 1:
            continue
        places = _PERIOD // gcd(_PERIOD, steps[0] * 4)
        if int(block.iter_vars[last].dom.extent) > places * _WAYS:
            return along, last
    return None


def _last(axes: list[Var], indices: Sequence[Expr]) -> int | None:
    """Find the axis of the last dimension; a scalar has none."""
    return next((number for number, axis in enumerate(axes) if indices and axis.same_as(indices[-1])), None)
