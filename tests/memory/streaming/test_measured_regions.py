"""Compare the bytes that a search counts for regions, in this program and by forms known from others, with regions made from scratch."""

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.memory.streaming import region_forms
from passfit.memory.streaming.in_place import GROWING, IN_PLACE
from passfit.memory.streaming.partitioner import Partitioner
from passfit.memory.streaming.region import region, region_of
from passfit.memory.streaming.region_builder import RegionBuilder, last_needs
from passfit.memory.streaming.region_forms import KnownForms, RegionForms
from passfit.memory.streaming.rematerialise import Repeat, best_repeats, repeat_steps, work_of
from passfit.memory.validation.validate_region import validate_region

from ..rowwise import RowBuilder, row_programs

ALIGNMENTS = st.sampled_from([1, 64])


@st.composite
def related_programs(draw: st.DrawFn):
    """Draw a program, the same with one step more run again each time, and the splits of all."""
    program, splits = draw(row_programs(most=6))
    found = [program]
    for _ in range(2):
        if len(program.steps) > 1:
            step = draw(st.integers(0, len(program.steps) - 2))
            program = repeat_steps(program, Repeat((step,), draw(st.integers(step + 1, len(program.steps) - 1))))
            found.append(program)
    return found, splits


def places(program):
    count = len(program.steps)
    return [(first, end, axis) for first in range(count) for end in range(first + 1, count + 1) for axis in (0, 1)]


def made(program, splits, first, end, axis, alignment, over=IN_PLACE):
    """Make the region and the one in place; return the bytes of each, None if there is none."""
    found = [region(program, splits, first, end - 1, axis, 1, in_place) for in_place in (0, over)]
    return tuple(None if each is None else each.nbytes(program, alignment) for each in found)


@given(row_programs(), ALIGNMENTS, st.booleans())
def test_a_region_of_a_path_takes_the_bytes_that_the_search_counts(case, alignment, growing):
    program, splits = case
    paths = Partitioner(program, splits, alignment, growing=growing)
    for first, end, _ in places(program):
        for most in (10**9, paths.bytes_around(first, end)):
            found = paths.streamed(first, end, most)
            if found is not None:
                over = GROWING if growing else IN_PLACE
                bytes_made = made(program, splits, first, end, found.axis, alignment, over)[found.in_place > 0]
                assert found.nbytes == paths.bytes_around(first, end) + bytes_made <= most


@given(row_programs())
def test_the_bound_on_the_rings_is_below_them(case):
    program, splits = case
    for first, end, axis in places(program):
        builder = RegionBuilder(program, splits, first, axis, last_needs(program))
        found = all(builder.grow() for _ in range(first, end)) and region_of(builder)
        assert not found or builder.least_bytes <= found.nbytes(program, 1)


@st.composite
def alike_programs(draw: st.DrawFn):
    """Draw programs whose steps differ in what they read, and in nothing else."""
    found, splits = [], {}
    for _ in range(3):
        builder = RowBuilder()
        values = [builder.tensor(8, 8), builder.tensor(8, 8)]
        for _ in range(4):
            recent = st.sampled_from(values[-3:])
            window = draw(st.booleans())
            values.append(
                builder.window(draw(recent), size=3, pad=1) if window else builder.join(draw(recent), draw(recent))
            )
        program, own = builder.program(*draw(st.lists(st.sampled_from(values[2:]), max_size=1)))
        steps = tuple(replace(step, kernel=f"{len(found)}{step.kernel}") for step in program.steps)
        splits |= {f"{len(found)}{name}": each for name, each in own.items()}
        found.append(replace(program, steps=steps))
    return found, splits


@settings(max_examples=300)
@given(st.one_of(alike_programs(), related_programs()), ALIGNMENTS)
def test_regions_of_one_form_take_the_same_bytes_in_every_program(case, alignment):
    programs, splits = case
    known, measured = KnownForms(alignment), {}
    for program in programs:
        forms = RegionForms(program, splits, known)
        for first in range(len(program.steps)):
            for axis in (0, 1):
                form = forms.start(axis)
                for step in range(first, len(program.steps)):
                    form = forms.grown(form, first, step)
                    found = made(program, splits, first, step + 1, axis, alignment)
                    assert measured.setdefault(form, found) == found


def test_a_lead_of_half_a_row_leaves_the_rows_that_are_read():
    builder = RowBuilder()
    source = builder.window(builder.tensor(10, 64), size=1)
    early, late = builder.resize(source, 20), builder.resize(source, 20)
    builder.join(builder.window(early, size=3, pad=1), late)
    program, splits = builder.program()
    validate_region(program, splits, region(program, splits, 0, 4, 0))


def test_the_search_counts_the_rows_that_a_pooling_begins_early():
    builder = RowBuilder()
    source = builder.window(builder.tensor(24, 64), size=1)
    builder.window(builder.window(source, size=3, stride=2, taps=True), size=1)
    program, splits = builder.program()
    found = Partitioner(program, splits, 1).streamed(0, 3, 10**9)
    assert found.nbytes == 24 * 64 + 11 * 64 + region(program, splits, 0, 2, 0).nbytes(program)
    assert region(program, splits, 0, 2, 0).nbytes(program) == 3 * 64  # a row of the source, and two rows in the making


def test_a_region_after_steps_run_again_has_the_form_it_had():
    builder = RowBuilder()
    last = builder.tensor(24, 8)
    for _ in range(5):
        last = builder.window(last, size=3, pad=1)
    program, splits = builder.program()
    again = repeat_steps(program, Repeat((0,), 1))
    forms = [RegionForms(each, splits, known) for known in [KnownForms(1)] for each in (program, again)]
    numbers = []
    for each, first in zip(forms, (2, 3)):
        numbers.append([each.start(0)])
        for step in range(first, first + 3):
            numbers[-1].append(each.grown(numbers[-1][-1], first, step))
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) == 4


@given(related_programs(), ALIGNMENTS)
def test_what_other_programs_taught_changes_no_path(case, alignment):
    programs, splits = case
    known = KnownForms(alignment)
    for program in programs:
        taught = Partitioner(program, splits, alignment, known)
        for most in sorted({*taught.alone, *(nbytes // 2 for nbytes in taught.alone)}, reverse=True):
            assert taught.within(most) == Partitioner(program, splits, alignment).within(most)


@given(row_programs(most=5), ALIGNMENTS)
def test_forgetting_changes_no_result(case, alignment):
    program, splits = case
    work = work_of(program, splits)
    kept = best_repeats(program, splits, work, alignment)
    with patch.object(region_forms, "MOST", -1):
        assert best_repeats(program, splits, work, alignment) == kept
