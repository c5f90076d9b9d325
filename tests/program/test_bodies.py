"""Look at the body of a loop as a program: put back unchanged, nothing is changed; what lies outside is kept."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from passfit.memory.liveness import lifetimes
from passfit.program import Program
from passfit.program.bodies import body_of, loops_of, replace_body

from ..memory.loops import looped, nested, recurrence
from ..strategies import programs


def _looped(program: Program, trips: int) -> Program:
    made = program.output_buffers()
    assume(
        made
        and not program.input_buffers() & made
        and all(program.tensors[port.tensor].weight is None for port in program.outputs)
    )
    return looped(program, trips)


@given(programs(), st.integers(1, 4))
def test_a_body_put_back_is_as_it_was(program: Program, trips: int):
    around = _looped(program, trips)
    assert replace_body(around, 0, body_of(around, 0)) == around


@given(programs(), st.integers(1, 4))
def test_what_lies_outside_a_body_lives_through_all_of_it(program: Program, trips: int):
    around = _looped(program, trips)
    body = body_of(around, 0)
    lives = lifetimes(body)
    assert all((lives[each].start, lives[each].end) == (0, max(1, len(body.steps))) for each in around.steps[0].outside)


def test_loops_inside_come_first():
    assert [path for path, _ in loops_of(nested())] == [(0, 1), (0,)]


def test_a_changed_loop_has_a_name_of_its_own():
    program = recurrence()
    twice = replace(program, steps=program.steps * 2)
    changed = replace_body(twice, 1, body_of(twice, 1))
    assert [step.kernel for step in changed.steps] == ["loop", "loop_"]


def test_a_step_that_runs_no_program_has_no_body():
    program = nested()
    assert body_of(program, 1) is None
    assert body_of(body_of(program, 0), 0) is None
