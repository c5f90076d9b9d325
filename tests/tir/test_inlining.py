"""Schedules skip TVM's check of types; a step that TVM refuses is still refused."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tvm


def test_a_schedule_steps_as_the_checked_one_does() -> None:
    from tvm import relax
    from tvm.ir import IRModule
    from tvm.s_tir.schedule import Schedule
    from tvm.tirx import PrimFunc
    from tvm_ffi import structural_equal

    from passfit.passes.sequence.catalogue import parse_spec
    from passfit.tir.inlining import attempt, new_schedule, root_blocks

    from ..kernels.programs import module_of

    legal = parse_spec("legalize").apply(module_of([(5, 7)], lambda x: relax.op.nn.softmax(x)))
    (kernel,) = [each for each in legal.functions.values() if isinstance(each, PrimFunc)]
    found = []
    for schedule in (new_schedule(kernel), Schedule(IRModule({"main": kernel}), debug_mask="none")):
        blocks = root_blocks(schedule)
        assert [attempt(schedule.compute_inline, block) for block in blocks] == [False, True, False, False]
        schedule.split(schedule.get_loops(blocks[-1])[-1], [None, 3])
        found.append(schedule.mod["main"])
    assert structural_equal(*found)
