"""Plan the body of a loop: apart where values live at once, in an order that computes the same, in every trip."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passfit.memory import ALIGNMENT, check_order, plan_arena, share, validate_plan
from passfit.memory.liveness import aligned
from passfit.program import Loop, Overlay, Program

from ...profiles import examples
from ...strategies import programs
from ..loops import SLICE, copied_state, looped, nested, planned, recurrence


@settings(max_examples=examples(60))
@given(programs(), st.integers(1, 4), st.booleans())
def test_the_loop_of_any_program_has_a_valid_plan(program: Program, trips: int, backwards: bool):
    given, made = program.input_buffers(), program.output_buffers()
    assume(made and not given & made and all(program.tensors[port.tensor].weight is None for port in program.outputs))
    assume(all(program.buffers[buffer].nbytes for buffer in (*given, *made)))
    around = planned(looped(program, trips, backwards))
    for each in (around, share(around)):
        validate_plan(each, plan_arena(each), ALIGNMENT)
    (loop,) = around.steps
    assert isinstance(loop, Loop)
    room = around.tensors[loop.writes[-1]].nbytes if loop.workspaces else 0
    assert room <= sum(
        aligned(buffer.nbytes) for number, buffer in enumerate(program.buffers) if number not in given | made
    )
    kernels = [step.kernel for step in program.steps]
    if len(set(kernels)) == len(kernels) == len(loop.body.steps):
        check_order(program, tuple(kernels.index(step.kernel) for step in loop.body.steps))


def test_the_first_state_and_the_slices_may_lie_in_the_results():
    (loop,) = planned(recurrence()).steps
    # x[t] is read before y[t] is made, h0 only copied
    assert set(loop.in_place) == {Overlay(0, 1), Overlay(1, 0)}
    program = share(planned(recurrence()))
    plan = plan_arena(program)
    validate_plan(program, plan, ALIGNMENT)
    assert plan.arena == 5 * SLICE + 2 * SLICE  # slices, the state, and s


def test_the_next_state_is_made_in_place_if_its_maker_may_write_there():
    for in_place, names, workspace in ((True, ["copy", "f", "k"], 0), (False, ["copy", "f", "k", "again"], SLICE)):
        program = planned(copied_state(in_place))
        validate_plan(program, plan_arena(program), ALIGNMENT)
        (loop,) = program.steps
        assert isinstance(loop, Loop) and [step.kernel for step in loop.body.steps] == names
        assert (program.tensors[loop.writes[-1]].nbytes if loop.workspaces else 0) == workspace


def test_a_loop_inside_has_its_workspace_in_that_of_the_loop_around():
    program = planned(nested())
    validate_plan(program, plan_arena(program), ALIGNMENT)
    (outer,) = program.steps
    inner = next(step for step in outer.body.steps if isinstance(step, Loop))
    assert inner.workspaces and outer.body.tensors[inner.writes[-1]].nbytes == SLICE
    assert program.tensors[outer.writes[-1]].nbytes == 1024 + SLICE  # h beside wide, as the loop runs first


def test_calls_in_loops_run_as_often_as_all_trips():
    assert {call.step.kernel: call.runs for call in nested().calls()} == {
        "wide": 40,
        "narrow": 40,
        "copy": 40,
        "f": 200,
        "g": 200,
        "k": 200,
    }
