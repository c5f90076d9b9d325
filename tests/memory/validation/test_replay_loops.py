"""A loop that computes wrong is refused: in its workspace, and trip by trip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from passfit.errors import PlanError
from passfit.memory import ALIGNMENT, plan_arena, share, validate_plan
from passfit.program import Buffer, Guard, Loop, Overlay, Program, Step, Tensor
from passfit.program.workspaces import add_workspaces

from ..loops import SLICE, copied_state, in_rows, planned, recurrence


def _changed(program: Program, change: Callable[[Loop], Loop]) -> Program:
    (loop,) = program.steps
    return replace(program, steps=(change(loop),))


def _body(loop: Loop, **changed: object) -> Loop:
    return replace(loop, body=replace(loop.body, **changed))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda loop: replace(loop, offsets=(0, 0, 0, 4096, 0)), "outside the workspace"),
        (lambda loop: replace(loop, offsets=(0, 0, 0, 3, 0)), "not a multiple"),
        (lambda loop: _body(loop, steps=loop.body.steps[::-1]), "before anything wrote it"),
        (lambda loop: _body(loop, steps=loop.body.steps[:3]), "does not write all of its result 1"),
        (
            lambda loop: replace(loop, windows=tuple(replace(each, stride=0) for each in loop.windows)),
            "does not write all of its result 1",
        ),
        (
            lambda loop: replace(loop, carries=()),
            r"Step 1 \(f\) of loop 'loop' in trip 1 reads .* 'h', after tensor 4 is written there",
        ),
        (
            lambda loop: _body(loop, steps=(loop.body.steps[0], *loop.body.steps[:0:-1])),
            r"Step 1 \(k\) of loop 'loop' in trip 0 reads .* after tensor 2 is written there",
        ),
        (lambda loop: replace(loop, carries=((2, 5),)), "lies elsewhere"),
    ],
)
def test_a_damaged_loop_is_refused(change: Callable[[Loop], Loop], message: str):
    program = planned(recurrence())
    plan = plan_arena(program)
    validate_plan(program, plan, ALIGNMENT)
    with pytest.raises(PlanError, match=message):
        validate_plan(_changed(program, change), plan, ALIGNMENT)


def test_a_step_after_the_next_state_is_made_finds_no_old_one():
    def late(loop: Loop) -> Loop:
        copy, f, g, k = loop.body.steps
        return _body(loop, steps=(copy, f, g, replace(k, reads=(2,))))

    program = planned(recurrence())
    with pytest.raises(PlanError, match=r"\(k\) of loop 'loop' in trip 0 reads .* after tensor 4 is written there"):
        validate_plan(_changed(program, late), plan_arena(program), ALIGNMENT)


def test_results_do_not_overtake_the_slices_in_whose_place_they_lie():
    program = share(planned(recurrence()))
    (loop,) = program.steps
    x, y = program.tensors[loop.reads[0]], program.tensors[loop.writes[1]]
    assert (x.buffer, x.offset) == (y.buffer, y.offset)
    # y one slice ahead of x: what trip 0 writes, trip 1 still reads
    moved = replace(x, offset=0), replace(y, offset=SLICE)
    tensors = tuple(
        {loop.reads[0]: moved[0], loop.writes[1]: moved[1]}.get(n, each) for n, each in enumerate(program.tensors)
    )
    buffers = tuple(
        replace(each, nbytes=each.nbytes + SLICE) if n == x.buffer else each for n, each in enumerate(program.buffers)
    )
    overlays = tuple(Overlay(0, 1, -SLICE) if each.read == 0 else each for each in loop.in_place)
    wrong = replace(program, tensors=tensors, buffers=buffers, steps=(replace(loop, in_place=overlays),))
    with pytest.raises(PlanError, match="in trip 1 reads .* of the arena, buffer 'x', after tensor 5 is written there"):
        validate_plan(wrong, plan_arena(wrong), ALIGNMENT)


def test_a_step_may_write_no_operand():
    def into(loop: Loop) -> Loop:
        return _body(loop, steps=(*loop.body.steps, replace(loop.body.steps[3], writes=(0,))))

    program = planned(recurrence())
    with pytest.raises(PlanError, match="writes tensor 0 of its body, which is not a result"):
        validate_plan(_changed(program, into), plan_arena(program), ALIGNMENT)


def test_the_slices_of_results_are_of_one_size():
    program = planned(recurrence())
    tensors = tuple(
        Tensor((SLICE * 6,), "uint8", buffer=3) if n == 3 else each for n, each in enumerate(program.tensors)
    )
    buffers = tuple(replace(each, nbytes=SLICE * 6) if n == 3 else each for n, each in enumerate(program.buffers))
    wider = replace(program, tensors=tensors, buffers=buffers)
    with pytest.raises(PlanError, match="does not write all of its result 1"):
        validate_plan(wider, plan_arena(wider), ALIGNMENT)


def test_two_windows_may_write_the_rows_of_a_result_between_them():
    program = planned(in_rows())
    validate_plan(program, plan_arena(program), ALIGNMENT)

    def once(loop: Loop) -> Loop:
        return _body(loop, steps=loop.body.steps[:1])

    with pytest.raises(PlanError, match="does not write all of its result 0"):
        validate_plan(_changed(program, once), plan_arena(program), ALIGNMENT)


def test_a_maker_writes_over_the_state_it_reads_only_where_allowed():
    program = planned(copied_state())
    validate_plan(program, plan_arena(program), ALIGNMENT)

    def forbidden(loop: Loop) -> Loop:
        return _body(
            loop, steps=tuple(replace(each, in_place=()) if each.kernel == "f" else each for each in loop.body.steps)
        )

    with pytest.raises(PlanError, match=r"\(f\) of loop 'loop' in trip 0 writes 'h' over 'h', which it still reads"):
        validate_plan(_changed(program, forbidden), plan_arena(program), ALIGNMENT)


def test_a_value_of_the_first_trip_is_not_overwritten_before_a_later_trip_reads_it():
    loop = recurrence().steps[0]
    copy, f, g, k = loop.body.steps
    once, late = len(loop.body.tensors), len(loop.body.tensors) + 1
    steps = (
        copy,
        Step("once", (0,), (once,), guard=Guard()),
        replace(f, reads=(*f.reads, once)),
        g,
        Step("late", g.writes, (late,)),
        replace(k, reads=(late,)),
    )
    tensors = (*loop.body.tensors, *(Tensor((SLICE,), "uint8", buffer=5 + n) for n in range(2)))
    buffers = (*loop.body.buffers, Buffer("once", SLICE), Buffer("late", SLICE))
    together = _body(loop, steps=steps, tensors=tensors, buffers=buffers)

    def placed(*offsets: int) -> Program:
        nbytes = max(offsets) + SLICE
        return add_workspaces(_changed(recurrence(), lambda _: replace(together, offsets=offsets)), {"loop": [nbytes]})

    apart = placed(0, 0, 0, 0, 0, SLICE, 2 * SLICE)
    validate_plan(apart, plan_arena(apart), ALIGNMENT)
    # apart within a trip: `once` is read before `late` is written
    wrong = placed(0, 0, 0, 0, 0, SLICE, SLICE)
    with pytest.raises(PlanError, match="in trip 1 reads .* 'once', after tensor 7 is written there"):
        validate_plan(wrong, plan_arena(wrong), ALIGNMENT)
