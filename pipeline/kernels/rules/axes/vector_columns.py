"""Reduce across memory by whole vectors of columns: a softmax over channels, the position of a largest channel.

    for x: top = max over c of x[c, x]; sum = Σ exp(…); for c: y[c, x] = …          single elements

    for X, 8 columns at a time:
        top[0:8] = max over c of x[c, X : X + 8]; sum[0:8] = Σ exp(…)              vectors
        for c: y[c, X : X + 8] = …

Kernels of a single plain reduction have better rules: see rules/tiles/tile_reduction.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tvm.ir import Expr
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import SBlockRV, Schedule
from tvm.tirx import BufferStore, PrimFunc

from ....targets import Machine
from ....tir.expressions import has_condition, is_contiguous, uses
from ....tir.inlining import (
    REFUSALS,
    inline_producers,
    intermediate_blocks,
    is_reduction,
    name_of,
    new_schedule,
    result_names,
    root_blocks,
    scheduled_kernel,
)
from ..fuse_loops import iteration_values, selecting_loops
from ..rule import RuleResult, Speed
from .overlap_vectors import overlapped

_REDUCE = 2
#: least lanes that pay
_LEAST = 4


def vector_columns(kernel: PrimFunc, _repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the kernel with vectors along its result's last axis, which no reduction runs along: a Rule.

    The last vectors overlap where none divides the axis.
    """
    made = _columns(kernel, machine.lanes) or overlapped(kernel, machine, _columns)
    if made is not None:
        yield RuleResult(made, speed=Speed.LANES)


def _columns(kernel: PrimFunc, lanes: int) -> PrimFunc | None:
    """Schedule all blocks by columns; None for another form."""
    schedule = new_schedule(kernel)
    try:
        return scheduled_kernel(schedule, kernel) if _scheduled(schedule, lanes) else None
    except REFUSALS:
        return None


def _scheduled(schedule: Schedule, most: int) -> bool:
    """Schedule all blocks by columns; false, perhaps half done, for another form."""
    inline_producers(schedule)
    blocks, results = root_blocks(schedule), result_names(schedule)
    before = intermediate_blocks(schedule, results)
    if len(blocks) != len(before) + 1 or not before or not all(_is_plain(schedule.get(block)) for block in blocks):
        return False
    (last,) = (block for block in blocks if name_of(schedule, block) in results)
    loops = schedule.get_loops(last)
    if is_reduction(schedule, last) or len(loops) != len(schedule.get(last).iter_vars):
        return False
    lanes = _lanes(int(schedule.get(loops[-1]).extent), most)
    flags = [selecting_loops(schedule, block, last, loops) for block in before if _reads(schedule, last, block)]
    selects = [any(each) for each in zip(*flags)]
    if lanes < _LEAST or not selects or not selects[-1]:
        return False
    columns = prod(int(schedule.get(loop).extent) for loop, each in zip(loops, selects) if each)
    if any(prod(map(int, schedule.get(block).writes[0].source.ty.shape)) != columns for block in before):
        return False
    around, inner = schedule.split(loops[-1], [None, lanes])
    outer, others = ([loop for loop, each in zip(loops[:-1], selects) if each is kind] for kind in (True, False))
    schedule.reorder(*outer, around, *others, inner)
    schedule.vectorize(inner)
    for block in reversed(before):
        schedule.compute_at(block, around, preserve_unit_loops=True)
        lanes_innermost(schedule, block)
    return True


def _lanes(extent: int, most: int) -> int:
    """Return the lanes of the longest vectors that divide `extent`."""
    while extent % most:
        most //= 2
    return most


def _reads(schedule: Schedule, reader: SBlockRV, block: SBlockRV) -> bool:
    return name_of(schedule, reader) in [name_of(schedule, each) for each in schedule.get_consumers(block)]


def _is_plain(block: SBlock) -> bool:
    """Return whether a block writes one element, at its axes, and reads columns side by side."""
    store = block.body
    if not isinstance(store, BufferStore) or has_condition(store.value) or not store.indices:
        return False
    column = store.indices[-1]
    spatial = [axis.var for axis in block.iter_vars if int(axis.iter_type) != _REDUCE]
    return any(axis.same_as(column) for axis in spatial) and is_contiguous(store.value, column)


def lanes_innermost(schedule: Schedule, block: SBlockRV, rows: Sequence[Expr] = (), *, unrolled: bool = False) -> None:
    """Move the axis of a block's last index inside its reduction, as vectors; `rows` around it are unrolled.

    So is the reduction, if it is to be `unrolled`. The initialisation gets a loop of its own.
    """
    axes, indices = schedule.get(block).iter_vars, schedule.get(block).body.indices
    values = iteration_values(schedule, block)  # a result without axes leaves loops in another order than axes
    bound = [
        (loop, axis)
        for loop in schedule.get_loops(block)[-len(axes) :]
        for axis, value in zip(axes, values)
        if uses(value, schedule.get(loop).loop_var)
    ]
    reduce = [loop for loop, axis in bound if int(axis.iter_type) == _REDUCE]
    *around, lane = [loop for index in (*rows, indices[-1]) for loop, axis in bound if axis.var.same_as(index)]
    schedule.reorder(*reduce, *around, lane)
    for loop in (*(reduce if unrolled else ()), *around):
        schedule.unroll(loop)
    schedule.vectorize(lane)  # before the decomposition: TVM takes an update alone for no reduction
    if reduce:
        schedule.decompose_reduction(block, reduce[0])
