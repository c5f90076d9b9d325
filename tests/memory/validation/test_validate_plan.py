import itertools
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from passfit.errors import PlanError
from passfit.memory import lifetimes, plan_arena, validate_plan
from passfit.program import Step

from ...strategies import chain, programs


@given(programs(), st.data())
def test_two_buffers_moved_onto_each_other_are_found(program, data):
    plan = plan_arena(program)
    lives = lifetimes(program)
    pairs = [
        (a, b)
        for a in range(len(lives))
        for b in range(len(lives))
        if a != b and lives[a].overlaps(lives[b]) and program.buffers[a].nbytes and program.buffers[b].nbytes
    ]
    assume(pairs)
    moved, onto = data.draw(st.sampled_from(pairs))
    offsets = list(plan.offsets)
    offsets[moved] = offsets[onto]
    arena = plan.arena * 2
    with pytest.raises(PlanError, match="share memory while both are alive"):
        validate_plan(program, replace(plan, offsets=tuple(offsets), arena=arena, proved=False), 64)


@given(programs(), st.data())
def test_a_plan_with_one_changed_offset_is_refused_or_harmless(program, data):
    assume(program.buffers)
    plan = plan_arena(program)
    number = data.draw(st.integers(0, len(program.buffers) - 1))
    offsets = list(plan.offsets)
    offsets[number] = data.draw(st.integers(-64, plan.arena + 64))
    try:
        validate_plan(program, replace(plan, offsets=tuple(offsets)), 64)
    except PlanError:
        return
    lives, sizes = lifetimes(program), [-(-b.nbytes // 64) * 64 for b in program.buffers]
    for step in range(max(1, len(program.steps))):
        taken = sorted(
            (low, low + size) for low, size, life in zip(offsets, sizes, lives, strict=True)
            if size and life.start <= step < life.end
        )  # fmt: skip
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(taken))


def test_the_message_names_buffers_steps_and_offsets():
    program = chain(64, 64, 64)
    plan = replace(plan_arena(program), offsets=(0, 0, 64))
    with pytest.raises(PlanError) as error:
        validate_plan(program, plan, 64)
    assert str(error.value) == (
        "Buffers 'b0' (steps 0 to 0, bytes 0 to 64) and 'b1' (steps 0 to 1, bytes 0 to 64) "
        "share memory while both are alive."
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": (0, 64)}, "2 offsets for 3 buffers"),
        ({"offsets": (0, 32, 64)}, "'b1' is at offset 32, not a multiple of 64"),
        ({"offsets": (-64, 64, 0)}, "'b0' is at offset -64"),
        ({"offsets": (0, 64, 128)}, "'b2' of 64 bytes at offset 128 ends outside the arena of 128"),
        ({"bound": 64, "proved": False}, "bound is 64, but 128"),
        ({"floor": 64}, "floor is 64, but .* 128"),
        ({"proved": False}, "proved=False"),
        ({"arena": 192}, "proved=True of an arena of 192"),
    ],
)
def test_every_rule_is_checked(change, message):
    program = chain(64, 64, 64)
    with pytest.raises(PlanError, match=message):
        validate_plan(program, replace(plan_arena(program), **change), 64)


def test_reading_before_writing_is_refused():
    program = chain(64, 64, 64)
    swapped = program.reordered((1, 0))
    with pytest.raises(PlanError, match=r"Step 0 \(k1\) reads buffer 'b1' before anything wrote it"):
        validate_plan(swapped, plan_arena(swapped), 64)


def test_an_output_nobody_writes_is_refused():
    program = chain(64, 64)
    emptied = replace(program, steps=(Step("other", (0,), ()),))
    with pytest.raises(PlanError, match="Output 'y' reads buffer 'b1' before anything wrote it"):
        validate_plan(emptied, plan_arena(program), 64)
