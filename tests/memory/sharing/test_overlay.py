"""Overlay of an operand whose buffer holds more, at other times: the result's buffer grows, its parts live on their own."""

from dataclasses import replace

from passfit.memory import bound, plan_arena, validate_plan
from passfit.memory.liveness import ALIGNMENT
from passfit.memory.sharing.overlay import drop_empty_buffers, keeps_contents, overlay_operand
from passfit.program import Buffer, Overlay, Port, Program, Step, Tensor

KIB = 256  # floats


def chained(shift: int) -> Program:
    """An input of 8 KiB dies under a value of 4 on its buffer; a result of 6 may grow over that value."""
    tensors = tuple(Tensor((size * KIB,), "float32", buffer=buffer) for size, buffer in ((8, 0), (4, 0), (6, 1)))
    steps = (
        Step("first", (0,), (1,), in_place=(Overlay(0, 0),)),
        Step("second", (1,), (2,), in_place=(Overlay(0, 0, shift),)),
    )
    buffers = (Buffer("x", 8 * 1024), Buffer("y", 6 * 1024))
    return Program("chained", steps, tensors, buffers, (), (Port("x", 0),), (Port("y", 2),))


def test_a_buffer_grows_for_what_lies_beside_the_operand_at_other_times():
    program = chained(shift=2 * 1024)
    shared = drop_empty_buffers(overlay_operand(program, program.steps[1], program.steps[1].in_place[0]))
    assert [each.nbytes for each in shared.buffers] == [10 * 1024] and keeps_contents(shared, 0)
    assert [each.offset for each in shared.tensors] == [2048, 2048, 0]
    assert bound(shared) == 8 * 1024 < bound(program)
    plan = plan_arena(shared)
    validate_plan(shared, plan, ALIGNMENT)


def test_without_a_shift_a_buffer_keeps_its_size():
    program = chained(shift=0)
    moved = (program.tensors[0], replace(program.tensors[1], offset=3 * 1024), program.tensors[2])
    assert overlay_operand(replace(program, tensors=moved), program.steps[1], Overlay(0, 0)) is None
    assert overlay_operand(program, program.steps[1], Overlay(0, 0)) is not None
