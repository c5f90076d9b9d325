"""Store the copies of an element together: a picture grows by a whole factor.

for x: y[x] = data[x // 2]                                 a gather

for X: y[2 X] = data[X]; y[2 X + 1] = data[X]              a vector, stored twice in turns
"""

from __future__ import annotations

from tvm.s_tir import SBlock
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule
from tvm.tirx import BufferStore, Div, FloorDiv, IntImm, PrimFunc

from ....tir.expressions import collect, has_condition, loads
from ....tir.in_place.analysis import analyse_sharing
from ....tir.inlining import schedule_only_block

#: most copies
_COPIES = 8


def repeat_elements(kernel: PrimFunc) -> PrimFunc | None:
    """Unroll the copies of an unscheduled `kernel` without reduction; None for another form."""

    def unrolled(schedule: Schedule, block: SBlockRV, loops: list[LoopRV]) -> bool:
        copies = _copies(schedule.get(block))
        if copies is not None:
            schedule.unroll(schedule.split(loops[-1], [None, copies])[1])
        return copies is not None

    found = schedule_only_block(kernel, unrolled)
    if found is None:
        return None
    ours, before = analyse_sharing(found), analyse_sharing(kernel)
    keeps = set(ours.in_place) >= set(before.in_place) and (ours.results, ours.copies) == (
        before.results,
        before.copies,
    )
    return found if keeps else None


def _copies(block: SBlock) -> int | None:
    """Return how many results side by side read one element of each operand that the last axis moves; None for other forms."""
    store, axis = block.body, block.iter_vars[-1] if block.iter_vars else None
    if not isinstance(store, BufferStore) or axis is None or block.init is not None or has_condition(store.value):
        return None
    if not store.indices or not axis.var.same_as(store.indices[-1]):
        return None
    last = [index for load in loads(store.value) for index in load.indices[-1:]]
    quotients = [each for index in last for each in collect(index, Div, FloorDiv) if axis.var.same_as(each.a)]
    found = {int(each.b) for each in quotients if isinstance(each.b, IntImm)}
    if len(found) != 1 or not 1 < (copies := found.pop()) <= _COPIES:
        return None
    return copies if int(axis.dom.extent) % copies == 0 else None
