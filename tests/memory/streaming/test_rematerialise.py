"""Check that repeated steps compute the same, and that the search keeps within its work."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import PlanError
from passfit.memory import plan_arena
from passfit.memory.streaming.partition import best_partition
from passfit.memory.streaming.rematerialise import Repeat, best_repeats, moved_steps, repeat_steps, work_of
from passfit.program import Splits, View
from passfit.program.check import first_problem

from ...strategies import chain, programs
from ..rowwise import RowBuilder, row_programs
from ..shared_programs import outputs


@st.composite
def programs_and_repeats(draw: st.DrawFn):
    program = draw(programs())
    viewed = {view.source for view in program.views}
    free = [n for n, step in enumerate(program.steps) if not viewed & set(step.writes)]
    steps = draw(st.lists(st.sampled_from(free), max_size=4, unique=True)) if free else []
    last = max(steps, default=-1)
    if last + 1 >= len(program.steps):
        return program, None
    return program, Repeat(tuple(steps), draw(st.integers(last + 1, len(program.steps) - 1)), draw(st.booleans()))


@given(programs_and_repeats())
def test_steps_run_again_compute_the_same(case):
    program, repeat = case
    if repeat is None:
        return
    after = repeat_steps(program, repeat)
    assert first_problem(after) is None
    assert outputs(after, plan_arena(after)) == outputs(program, plan_arena(program))


@given(programs_and_repeats())
def test_no_late_reader_reads_what_was_made_early(case):
    program, repeat = case
    if repeat is None:
        return
    after = repeat_steps(program, repeat)
    moved = moved_steps(program, repeat) if repeat.move else frozenset()
    early = {t for number in repeat.steps if number not in moved for t in program.steps[number].writes}
    first = repeat.before - len(moved)
    again = range(first, first + len(repeat.steps))
    assert len(after.steps) == len(program.steps) + len(again) - len(moved)
    assert [after.steps[n].kernel for n in again] == [program.steps[n].kernel for n in sorted(repeat.steps)]
    assert not any(early & {*step.reads, *step.writes} for step in after.steps[first:])
    assert list(after.steps[:first]) == [
        step for n, step in enumerate(program.steps[: repeat.before]) if n not in moved
    ]


@given(programs_and_repeats())
def test_no_first_run_is_for_nothing(case):
    program, repeat = case
    if repeat is None:
        return
    after = repeat_steps(program, replace(repeat, move=True))
    needed = {t for step in after.steps for t in step.reads} | {port.tensor for port in program.outputs}
    for number in repeat.steps:
        step = program.steps[number]
        assert step not in after.steps or needed & set(step.writes) or not _is_read(program, step)


def _is_read(program, step):
    return any(set(step.writes) & set(each.reads) for each in program.steps)


def test_what_is_not_there_yet_or_viewed_cannot_be_run_again():
    program = chain(8, 8, 8, 8)
    for repeat in (Repeat((1,), 1), Repeat((2,), 1), Repeat((0,), 3), Repeat((7,), 2), Repeat((0, 9), 12)):
        with pytest.raises(PlanError, match="cannot be run again"):
            repeat_steps(program, repeat)
    viewed = replace(program, tensors=(*program.tensors, program.tensors[1]), views=(View(len(program.tensors), 1),))
    with pytest.raises(PlanError, match="cannot be run again"):
        repeat_steps(viewed, Repeat((0,), 2))
    assert len(repeat_steps(viewed, Repeat((1,), 2)).steps) == 4


@given(row_programs(most=5), st.sampled_from([0, 50, 1000, 10**9]), st.sampled_from([1, 64]))
def test_repeats_keep_within_their_work_and_never_cost_memory(case, work, alignment):
    program, splits = case
    found = best_repeats(program, splits, work, alignment)
    assert work_of(found.program, splits) - work_of(program, splits) <= work
    assert found.path.nbytes <= best_partition(program, splits, alignment).nbytes
    again = program
    for each in found.repeats:
        again = repeat_steps(again, each)
    assert again == found.program
    assert outputs(again, plan_arena(again)) == outputs(program, plan_arena(program))
    assert best_repeats(program, splits, work, alignment) == found


def hourglass(layers: int = 1):
    """Build a program with a peak between the first result of each layer and its last reader."""
    builder = RowBuilder()
    x = builder.tensor(8, 8)
    for _ in range(layers):
        early = builder.step((x,), (32, 8), work=256)
        middle = builder.step((early,), (8, 8), work=64)
        wide = builder.step((middle,), (64, 8), work=512)
        small = builder.step((wide,), (8, 8), work=64)
        last = builder.step((small, x), (8, 8), work=64)
        x = builder.step((last, early), (8, 8), work=64)
    return builder.program()


def test_the_search_ends_where_programs_are_tiny():
    """A byte is more than the precision of a path of a few bytes."""
    program = chain(3, 5, 4)
    splits = {step.kernel: Splits((), (), 1) for step in program.steps}
    assert best_repeats(program, splits, 9, alignment=1).path.nbytes == 9


def test_what_is_read_late_alone_is_moved_for_nothing():
    """No work is allowed: the early result has no reader before the peak."""
    builder = RowBuilder()
    x = builder.tensor(8, 8)
    early = builder.step((x,), (32, 8), work=256)
    wide = builder.step((x,), (64, 8), work=512)
    small = builder.step((wide,), (8, 8), work=64)
    last = builder.step((small, x), (8, 8), work=64)
    builder.step((last, early), (8, 8), work=64)
    program, splits = builder.program()
    found = best_repeats(program, splits, 0)
    assert found.repeats == (Repeat((0,), 4, move=True),)
    assert len(found.program.steps) == len(program.steps) and work_of(found.program, splits) == work_of(program, splits)
    assert found.path.nbytes < best_partition(program, splits).nbytes


def test_what_is_read_late_is_made_again():
    program, splits = hourglass()
    kept, again = best_repeats(program, splits, 255), best_repeats(program, splits, 256)
    assert kept.repeats == () and kept.path.nbytes == (8 + 32 + 8 + 64) * 8
    assert again.repeats == (Repeat((0,), 5),)
    assert again.path.nbytes == (8 + 8 + 64) * 8


@pytest.mark.parametrize("layers", [2, 12])
def test_equal_layers_share_the_work(layers):
    """All of them need a repeat, or none does: less work than enough lowers nothing."""
    program, splits = hourglass(layers)
    found = best_repeats(program, splits, 256 * layers)
    assert found.repeats == tuple(Repeat((7 * layer,), 7 * layer + 5) for layer in range(layers))
    assert found.path.nbytes == best_repeats(*hourglass(), 256).path.nbytes
    kept = best_repeats(program, splits, 256 * layers - 1)
    assert kept.repeats == () and kept.refused


def test_layers_that_take_less_are_left_alone():
    """Another layer, between two equal ones, takes half as much: nothing of it is made again."""
    builder = RowBuilder()
    x = builder.tensor(8, 8)
    for rows in (32, 8, 32):
        early = builder.step((x,), (rows, 8), work=256)
        wide = builder.step((early,), (2 * rows, 8), work=512)
        small = builder.step((wide,), (8, 8), work=64)
        x = builder.step((small, early, x), (8, 8), work=64)
    found = best_repeats(*builder.program(), 10_000)
    assert found.repeats == (Repeat((0,), 3), Repeat((9,), 12))
