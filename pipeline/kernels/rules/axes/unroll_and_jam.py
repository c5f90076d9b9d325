"""Unroll and jam the rows of a reduction that share an operand: load each vector of it once.

    for … rows, R at a time:
        lanes[0:R][0:8] = 0
        for … reduction, 8 at a time:
            lanes[i][0:8] += data[i][k : k + 8] * shared[k : k + 8]        R chains of additions, not one
        result[i] = lanes[i][0] + lanes[i][1] + …                          for each of R rows

A single chain waits for each addition, and loads two vectors for each.
"""

from __future__ import annotations

import tvm_ffi
from tvm.ir import Expr, Var
from tvm.s_tir import SBlock
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import BufferStore, IterVar

from ....support.divisors import divisors
from ....targets import Machine
from ....tir.expressions import loads, uses
from ....tir.inlining import root_blocks
from ..fuse_loops import iteration_values
from .vector_columns import lanes_innermost

#: most rows: with two chains each, they keep two units of multiply-adds busy
_MOST_ROWS = 8
#: lanes that are summed one by one
_QUARTER = 4
_REDUCE = 2


def unroll_and_jam(schedule: Schedule, partial: SBlockRV, total: SBlockRV, machine: Machine) -> bool:
    """Place the only reduction of a kernel, rows side by side; false, with nothing changed, for another form.

    `partial` sums by lanes, its last index; `total` sums the lanes. Rows follow an axis that moves some operands, not
    all. Sums of all rows take at most half the registers. Short code has no room for them.
    """
    consumers = schedule.get_consumers(total)
    if machine.compact or len(consumers) > 1 or len(root_blocks(schedule)) != 2 + len(consumers):
        return False
    host = consumers[0] if consumers else total
    chosen = _shared_axis(schedule.get(partial), machine)
    if chosen is None or _places(schedule, total, host) is None:
        return False
    dimension, rows = chosen
    inside = [*_quarters(schedule, total), partial]
    place = (_places(schedule, total, host) or [])[dimension]
    loops = _own_loops(schedule, host)
    (split,) = [loop for axis, loop in loops if axis.var.same_as(place)]
    around, inner = schedule.split(split, [None, rows])
    spatial = [loop for axis, loop in loops if int(axis.iter_type) != _REDUCE and loop is not split]
    summed = [loop for axis, loop in loops if int(axis.iter_type) == _REDUCE]
    schedule.reorder(*spatial, around, inner, *summed)
    for each in (*([total] if consumers else []), *inside):
        schedule.compute_at(each, around, preserve_unit_loops=True)
    for each in [host, total] if consumers else [total]:
        for loop in schedule.get_loops(each)[len(spatial) + 1 :]:
            schedule.unroll(loop)
    for each in inside:
        rows_of_block = [schedule.get(each).body.indices[dimension]]
        lanes_innermost(schedule, each, rows_of_block, unrolled=each is not partial)
    return True


def _quarters(schedule: Schedule, total: SBlockRV) -> list[SBlockRV]:
    """Sum more than four lanes by vectors of four first."""
    (loop,) = [loop for axis, loop in _own_loops(schedule, total) if int(axis.iter_type) == _REDUCE]
    lanes = int(schedule.get(loop).extent)
    if lanes <= _QUARTER or lanes % _QUARTER:
        return []
    rank = len(schedule.get(total).writes[0].region)
    return [schedule.rfactor(schedule.split(loop, [None, _QUARTER])[1], rank)]


def _shared_axis(partial: SBlock, machine: Machine) -> tuple[int, int] | None:
    """Return the dimension of the partial sums along which an operand is shared, and how many rows to jam."""
    store = partial.body
    if not isinstance(store, BufferStore):
        return None
    extents = {axis.var: int(axis.dom.extent) for axis in partial.iter_vars}
    *indices, lane = store.indices
    vectors = -(-extents[lane] // machine.lanes)
    most = min(_MOST_ROWS, machine.registers // 2 // vectors)
    terms = [load for load in loads(store.value) if not load.source.same_as(store.buffer)]
    found = [
        (divisors(extents[index], most)[-1], dimension)
        for dimension, index in enumerate(indices)
        if isinstance(index, Var) and 0 < sum(uses(load, index) for load in terms) < len(terms) and most > 1
    ]
    rows, dimension = max(found, default=(1, 0))
    return (dimension, rows) if rows > 1 else None


def _places(schedule: Schedule, total: SBlockRV, host: SBlockRV) -> list[Expr] | None:
    """Return the axis of `host` that selects each dimension of the sums; None if there is more to its loops."""
    block = schedule.get(host)
    store, sums = block.body, schedule.get(total).writes[0].source
    if not isinstance(store, BufferStore) or len(_own_loops(schedule, host)) != len(block.iter_vars):
        return None
    read = [store, *(load for load in loads(store.value) if load.source.same_as(sums))]
    same = [each for each in read if (each.buffer if each is store else each.source).same_as(sums)]
    indices = list(same[0].indices) if same else []
    if any(not all(map(tvm_ffi.structural_equal, each.indices, indices)) for each in same):
        return None
    axes = [axis for axis in block.iter_vars if int(axis.iter_type) != _REDUCE]
    moved = [axis for axis in axes if any(axis.var.same_as(index) for index in indices)]
    if any(int(axis.dom.extent) > 1 for axis in axes if not any(axis is each for each in moved)):
        return None
    return indices


def _own_loops(schedule: Schedule, block: SBlockRV) -> list[tuple[IterVar, LoopRV]]:
    """Pair the axes of a block with the loops they follow alone."""
    pairs = list(zip(schedule.get(block).iter_vars, iteration_values(schedule, block)))
    loops = schedule.get_loops(block)
    return [(axis, loop) for loop in loops for axis, value in pairs if schedule.get(loop).loop_var.same_as(value)]
