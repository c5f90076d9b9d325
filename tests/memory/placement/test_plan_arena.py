from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passfit.memory import plan_arena, validate_plan

from ...profiles import examples
from ...strategies import chain, programs
from .. import brute_force


@given(programs(max_steps=20), st.sampled_from([1, 16, 64, 256]))
def test_every_plan_is_valid(program, alignment):
    validate_plan(program, plan_arena(program, alignment), alignment)


@given(programs(max_steps=20))
def test_arena_is_at_least_bound_is_at_least_floor(program):
    plan = plan_arena(program)
    assert plan.arena >= plan.bound >= plan.floor
    assert plan.proved == (plan.arena == plan.bound)


@settings(max_examples=examples(60))
@given(programs(max_steps=4, max_inputs=2), st.sampled_from([1, 64]))
def test_the_arena_is_the_least_there_is_for_up_to_seven_buffers(program, alignment):
    boxes = brute_force.boxes(program, alignment)
    assume(len(boxes) <= 7)
    assert plan_arena(program, alignment).arena == brute_force.least_arena(boxes)


@given(programs())
def test_the_same_program_gets_the_same_plan(program):
    assert plan_arena(program) == plan_arena(program)


def test_a_chain_needs_its_largest_pair():
    plan = plan_arena(chain(640, 1280, 64, 320))
    assert plan.arena == plan.bound == plan.floor == 1920
    assert plan.proved


def test_offsets_are_aligned_and_buffers_padded():
    plan = plan_arena(chain(1, 1), alignment=64)
    assert sorted(plan.offsets) == [0, 64]
    assert plan.arena == 128
