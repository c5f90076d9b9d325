"""A sum continues in place only by a schedule that reads each element before it writes it."""

import pytest

pytest.importorskip("tvm")

from tvm import tirx
from tvm.ir import Var
from tvm.tirx import BufferStore, For

from passfit.kernels.schedule.candidates import Schedule, Schedules
from passfit.kernels.schedule.sum_in_place import continues_in_place, schedule_in_place
from passfit.tir.loop_nests import buffer_of, int64, kernel_of, sequence

pytestmark = pytest.mark.tvm


def added(starts, lanes, *, first=False):
    """Add data to a sum by vectors at `starts`: all sums are read `first`, or each as it is written."""
    data, so_far, result = (buffer_of(name, (14,), "float32") for name in ("data", "so_far", "result"))
    held = buffer_of("held", (len(starts), lanes), "float32")

    def vector(store):
        lane = Var("lane", "int64")
        return For(lane, int64(0), int64(lanes), 2, store(lane))

    def sum_(at):
        return tirx.BufferLoad(so_far, [at]) + tirx.BufferLoad(data, [at])

    if first:
        parts = [
            vector(lambda lane, n=n, start=start: BufferStore(held, sum_(lane + start), [int64(n), lane]))
            for n, start in enumerate(starts)
        ]
        parts += [
            vector(
                lambda lane, n=n, start=start: BufferStore(
                    result, tirx.BufferLoad(held, [int64(n), lane]), [lane + start]
                )
            )
            for n, start in enumerate(starts)
        ]
    else:
        parts = [
            vector(lambda lane, start=start: BufferStore(result, sum_(lane + start), [lane + start]))
            for start in starts
        ]
    return kernel_of([data, so_far, result], [sequence(parts)], [held] if first else [], None)


APART, OVERLAPPING, READ_FIRST = added((0, 7), 7), added((0, 6), 8), added((0, 6), 8, first=True)


@pytest.mark.parametrize(("kernel", "allowed"), [(APART, True), (OVERLAPPING, False), (READ_FIRST, True)])
def test_no_element_is_read_after_it_is_written(kernel, allowed):
    assert continues_in_place(kernel, 1) == allowed


def test_the_fastest_such_schedule_is_chosen_else_the_last():
    def chosen(*kernels):
        return schedule_in_place(Schedules(lambda: 0, [Schedule(kernel, 0) for kernel in kernels]), 1).kernel

    assert chosen(OVERLAPPING, READ_FIRST, APART).same_as(READ_FIRST)
    assert chosen(OVERLAPPING, OVERLAPPING).same_as(OVERLAPPING)
