"""Walk transposed operands in blocks that use up each cache line; turn small ones in registers.

for i, j: y[i, j] = x[j, i]                                        512 lines of x for each line of y

for I, J in blocks of 16 by 16: for i in I, j in J: y[i, j] = x[j, i]       16 lines of both at a time

for i, j in a block, 8 by 8:
    turned[0:8][0:8] = x[j : j + 8, i : i + 8]                     vectors are loaded, shuffled and stored
    y[i : i + 8, j : j + 8] = turned[0:8][0:8], transposed
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import BufferStore, PrimFunc

from ....support.divisors import divisors
from ....targets import Machine
from ....tir.expressions import has_condition, is_costly, loads
from ....tir.in_place.analysis import analyse_sharing
from ....tir.inlining import schedule_only_block
from .overlap_vectors import overlapped

#: side of a block: the floats of a line of a cache
_SIDE = 16
#: least side that pays
_LEAST = 8
#: sides of a block that registers hold, the fastest first: a quarter of the time by eights, where vectors have them
_TURNED, _DTYPES = (8, 4), ("float32", "int32")
#: bytes after which places in the nearest cache repeat, and how many lines with one place it holds
_PERIOD, _WAYS = 4096, 8


def block_transposes(kernel: PrimFunc, machine: Machine) -> PrimFunc | None:
    """Block the loops of an unscheduled `kernel` without reduction; None if it transposes nothing that pays."""
    if not _transposes(kernel):
        return None
    wide = machine.lanes >= _TURNED[0] and not machine.compact and not is_costly(kernel.body)
    turned = (_turned_whole(kernel, side) for side in _TURNED[0 if wide else 1 :])
    return next((each for each in turned if each is not None), None) or _in_lines(kernel)


def _transposes(kernel: PrimFunc) -> bool:
    """Return whether a kernel of one block has a transposed operand, of any size."""
    found = schedule_only_block(kernel, lambda schedule, block, _: _transposed(schedule.get(block)) is not None)
    return found is not None


def _turned_whole(kernel: PrimFunc, side: int) -> PrimFunc | None:
    """Turn blocks in registers, the last of an uneven axis over the one before; None if that shares less memory."""
    found = _turned(kernel, side) or overlapped(kernel, Machine(lanes=side), lambda wide, _lanes: _turned(wide, side))
    return found if found is not None and analyse_sharing(found) == analyse_sharing(kernel) else None


def _turned(kernel: PrimFunc, side: int) -> PrimFunc | None:
    """Turn blocks of `side` by `side` in registers; None for another form."""

    def steps(schedule: Schedule, block: SBlockRV, loops: list[LoopRV]) -> bool:
        found = _transposed(schedule.get(block))
        if found is None:
            return False
        load, *pair = found
        read = [each for each in loads(schedule.get(block).body.value) if each.source.same_as(load.source)]
        extents = [int(schedule.get(loops[axis]).extent) for axis in pair]
        same = str(load.source.ty.dtype) == str(schedule.get(block).body.buffer.ty.dtype) in _DTYPES
        if len(read) > 1 or not same or min(extents) < _LEAST or any(extent % side for extent in extents):
            return False
        counts = [max(divisors(extent // side, _SIDE // side)) for extent in extents]
        (outer, middle, inner), (outer_last, middle_last, last) = (
            schedule.split(loops[axis], [None, count, side]) for axis, count in zip(pair, counts)
        )
        others = [loop for number, loop in enumerate(loops) if number not in pair]
        schedule.reorder(*others, outer, outer_last, middle, middle_last, inner, last)
        _load_vectors(schedule, block, load, middle_last)
        schedule.unroll(inner)
        schedule.vectorize(last)
        return True

    return schedule_only_block(kernel, steps)


def _load_vectors(schedule: Schedule, block: SBlockRV, load: TensorLoad, around: LoopRV) -> None:
    """Copy the part of an operand that a block in registers reads, by vectors."""
    number = next(n for n, each in enumerate(schedule.get(block).reads) if each.source.same_as(load.source))
    # of TVM's other scope "local", LowerTVMBuiltin takes even small buffers from the workspace
    copy = schedule.cache_read(block, number, "global")
    schedule.compute_at(copy, around, preserve_unit_loops=True)
    *lines, lane = schedule.get_loops(copy)[-len(schedule.get(copy).iter_vars) :]
    for loop in lines:
        schedule.unroll(loop)
    schedule.vectorize(lane)


def _in_lines(kernel: PrimFunc) -> PrimFunc | None:
    """Block loops by lines of a cache; None if it holds the lines of the operand that meet a line of the result."""

    def steps(schedule: Schedule, block: SBlockRV, loops: list[LoopRV]) -> bool:
        found = _transposed(schedule.get(block), large=True)
        if found is None:
            return False
        _, *pair = found
        sides = [divisors(int(schedule.get(loops[axis]).extent), _SIDE)[-1] for axis in pair]
        if min(sides) < _LEAST:
            return False
        (outer, inner), (outer_last, last) = (
            schedule.split(loops[axis], [None, side]) for axis, side in zip(pair, sides)
        )
        others = [loop for number, loop in enumerate(loops) if number not in pair]
        schedule.reorder(*others, outer, outer_last, inner, last)
        return True

    return schedule_only_block(kernel, steps)


def _transposed(block: SBlock, large: bool = False) -> tuple[TensorLoad, int, int] | None:
    """Find a transposed operand, and the axes along which it and the result run in memory.

    With `large`, one of which the nearest cache does not hold the lines that meet a line of the result.
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
        if along is None or along == last or len(steps) != 1:
            continue
        places = _PERIOD // gcd(_PERIOD, steps[0] * 4)
        if not large or int(block.iter_vars[last].dom.extent) > places * _WAYS:
            return load, along, last
    return None


def _last(axes: list[Var], indices: Sequence[Expr]) -> int | None:
    """Find the axis of the last dimension; a scalar has none."""
    return next((number for number, axis in enumerate(axes) if indices and axis.same_as(indices[-1])), None)
