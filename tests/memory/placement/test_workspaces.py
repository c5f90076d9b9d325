"""Plan workspaces in the arena: beside all that is alive at their step, for no more bytes than beside the arena."""

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory import account, plan_arena, validate_plan
from passfit.memory.liveness import aligned
from passfit.program.check import first_problem
from passfit.program.workspaces import add_workspaces, drop_workspaces, largest_workspace

from ...strategies import chain, programs

SIZES = st.lists(st.integers(0, 400), min_size=40, max_size=40)


def _given(program, sizes):
    return add_workspaces(program, {step.kernel: [size] * (size > 0) for step, size in zip(program.steps, sizes)})


@given(programs(max_steps=20), SIZES)
def test_a_workspace_costs_at_most_what_it_would_beside_the_arena(program, sizes):
    planned = _given(program, sizes)
    plan, before = plan_arena(planned), plan_arena(program)
    validate_plan(planned, plan, 64)
    assert plan.arena <= before.arena + aligned(largest_workspace(planned))


@given(programs(max_steps=20), SIZES)
def test_workspaces_come_and_go_and_are_no_tensors_of_the_model(program, sizes):
    planned = _given(program, sizes)
    assert first_problem(planned) is None
    assert drop_workspaces(planned) == program
    assert [step.results for step in planned.steps] == [step.writes for step in program.steps]
    one, other = (
        account(each, plan_arena(each), workspace=0, code=0, weights_in_place=True) for each in (program, planned)
    )
    assert one.sum == other.sum


def test_a_workspace_lies_in_free_bytes():
    program = chain(640, 640, 64, 64)
    planned = add_workspaces(program, {program.steps[-1].kernel: [1024]})
    assert plan_arena(planned).arena == plan_arena(program).arena == 1280
