"""Run regions on a machine row by row: each row read is there, nothing is computed twice."""

from dataclasses import replace

import pytest
from hypothesis import given

from passfit.memory import ALIGNMENT, live_bytes, plan_arena, validate_plan
from passfit.memory.sharing.overlay import drop_empty_buffers, keeps_contents, overlay_operand
from passfit.memory.streaming.growth import SegmentOverlap
from passfit.memory.streaming.in_place import GROWING, IN_PLACE
from passfit.memory.streaming.merge_region import estimate_region
from passfit.memory.streaming.region import region
from passfit.memory.validation.validate_region import validate_region
from passfit.program import Rows, View
from passfit.program.check import first_problem

from ..rowwise import RowBuilder, along, row_programs, windows


def regions(program, splits, groups=(1, 2, 3), ways=(0, IN_PLACE, GROWING)):
    for first in range(len(program.steps)):
        for last in range(first, len(program.steps)):
            for axis in (0, 1):
                for group in groups:
                    for in_place in ways:
                        found = region(program, splits, first, last, axis, group, in_place=in_place)
                        if found is not None:
                            yield found


@given(row_programs())
def test_every_row_is_there_when_it_is_needed(case):
    program, splits = case
    for found in regions(program, splits):
        validate_region(program, splits, found)


@given(row_programs())
def test_a_joined_program_is_valid_and_costs_what_was_said(case):
    program, splits = case
    for found in regions(program, splits, groups=(1, 2)):
        after, step = estimate_region(program, found)
        assert first_problem(after) is None
        validate_plan(after, plan_arena(after), ALIGNMENT)
        assert len(after.steps) == len(program.steps) - len(found.stages) + 1
        assert (after.inputs, after.outputs) == (program.inputs, program.outputs)
        assert step.results == found.results
        rings = [after.buffers[after.tensors[t].buffer].nbytes for t in step.writes[len(found.results) :]]
        saved = found.replacement.saved(program, ALIGNMENT) if found.replacement else 0
        assert sum(-(-each // ALIGNMENT) * ALIGNMENT for each in rings) == found.nbytes(program) + saved


@given(row_programs())
def test_a_slot_has_room_for_its_largest_rows_and_for_no_more(case):
    program, splits = case
    for found in regions(program, splits, ways=(0,)):
        rows = {}
        for stage in found.stages:
            if stage.slot is not None:
                (tensor,) = program.steps[stage.step].writes
                rows.setdefault(stage.slot, []).append(program.tensors[tensor].nbytes // stage.extent * stage.group)
        slots = found.workspaces(program)[len(found.workspaces(program)) - len(rows) :]
        assert sorted(slots) == sorted(map(max, rows.values()))


@given(row_programs())
def test_a_result_may_take_the_place_that_was_said(case):
    program, splits = case
    for found in regions(program, splits, ways=(IN_PLACE, GROWING)):
        after, step = estimate_region(program, found)
        for overlay in step.in_place:
            after = overlay_operand(after, step, overlay)
        buffer = after.tensors[found.replacement.result].buffer
        assert keeps_contents(after, buffer)
        before, now = (
            live_bytes(each, ALIGNMENT) for each in (estimate_region(program, found)[0], drop_empty_buffers(after))
        )
        number = after.steps.index(step)
        assert before[number] - now[number] == found.replacement.saved(program, ALIGNMENT) > 0


@given(row_programs())
def test_what_others_need_is_whole_and_the_rest_is_never_larger_than_it_was(case):
    program, splits = case
    for found in regions(program, splits, groups=(1,)):
        inside = {stage.step for stage in found.stages}
        outside = {t for n, step in enumerate(program.steps) if n not in inside for t in step.reads}
        outside |= {port.tensor for port in program.outputs}
        after, _ = estimate_region(program, found)
        for stage in found.stages:
            (tensor,) = program.steps[stage.step].writes
            assert (tensor in found.results) == (tensor in outside)
            assert (tensor in found.rings) != (tensor in found.results)
            if tensor in found.results:
                assert after.tensors[tensor] == program.tensors[tensor]
            else:
                assert 0 < stage.held <= stage.extent and after.tensors[tensor].nbytes <= program.tensors[tensor].nbytes


def chain(*windows: dict[str, int], rows: int = 24, columns: int = 64):
    builder = RowBuilder()
    last = builder.tensor(rows, columns)
    for options in windows:
        last = builder.window(last, **options)
    return builder.program()


def found_in(case, axis: int = 0, group: int = 1):
    program, splits = case
    found = region(program, splits, 0, len(program.steps) - 1, axis, group)
    assert found is not None
    validate_region(program, splits, found)
    return found


def test_a_ring_holds_what_a_window_reaches_over():
    """The picture in memory.streaming.region."""
    case = chain({"size": 1}, {"size": 3, "stride": 2})
    found = found_in(case)
    assert [(stage.period, stage.held) for stage in found.stages] == [(1, 3), (2, 11)]
    assert found.nbytes(case[0]) == 3 * 64
    assert (found.rings, found.results) == ((1,), (2,))


@pytest.mark.parametrize(
    "reader, held",
    [
        ({"size": 1}, 1),
        ({"size": 3, "pad": 1}, 3),
        ({"size": 3, "pad": 1, "dilation": 4, "after": 7}, 9),
        ({"size": 1, "stride": 3}, 1),  # strides larger than the window: rows nobody reads
        ({"size": 2, "stride": 2}, 2),
        ({"size": 2, "stride": 4, "pad": 1}, 2),
        ({"size": 40, "pad": 20}, 24),  # all there is
    ],
)
def test_rings_are_as_small_as_their_reader_allows(reader, held):
    assert found_in(chain({"size": 1}, reader)).stages[0].held == held


@pytest.mark.parametrize(
    "reader, held, own",
    [
        ({"size": 2, "stride": 2}, 1, 3),
        ({"size": 3, "stride": 2, "pad": 1}, 1, 4),
        ({"size": 5, "stride": 2, "dilation": 2}, 1, 7),
        ({"size": 3, "pad": 1}, 3, 3),  # two rows for two
    ],
)
def test_a_window_that_accumulates_takes_rows_as_they_come(reader, held, own):
    builder = RowBuilder()
    row = builder.window(builder.tensor(40, 8), size=1)
    builder.window(builder.window(row, taps=True, **reader), size=3, pad=1)
    assert [stage.held for stage in found_in(builder.program()).stages[:2]] == [held, own]


def test_a_window_takes_all_rows_at_once_if_something_else_needs_them():
    for more in (False, True):
        builder = RowBuilder()
        row = builder.window(builder.tensor(24, 8), size=1)
        pooled = builder.window(row, taps=True, size=4, stride=2, pad=1)
        builder.join(pooled, row) if more else builder.window(pooled, size=1)
        assert found_in(builder.program()).stages[1].leads == (() if more else (3, 2, 1, 0))


@pytest.mark.parametrize(
    "windows, lag, held",
    [
        ([{"size": 1}], 0, 1),
        ([{"size": 3, "pad": 1}], 1, 2),  # the picture in memory.streaming.in_place
        ([{"size": 3, "pad": 1, "dilation": 3, "after": 5}], 1, 2),
        ([{"size": 3, "pad": 1}, {"size": 3, "pad": 1}], 0, 0),
        ([{"size": 5, "pad": 0, "after": 4}, {"size": 1}], 0, 0),
        ([{"size": 5, "pad": 4, "after": 0}, {"size": 1}], 4, 5),
    ],
)
def test_rows_wait_for_the_last_reader_of_their_place(windows, lag, held):
    program, splits = chain(*windows)
    found = region(program, splits, 0, len(program.steps) - 1, 0, in_place=IN_PLACE)
    validate_region(program, splits, found)
    assert (found.replacement.lag, found.replacement.held) == (lag, held)
    assert found.replacement.operands == (0,) and found.replacement.saved(program, 64) == 24 * 64


def test_a_result_begins_so_many_rows_before_the_operand_that_it_needs_no_ring():
    program, splits = chain({"size": 5, "pad": 4, "after": 0}, {"size": 1})
    found = region(program, splits, 0, len(program.steps) - 1, 0, in_place=GROWING)
    validate_region(program, splits, found)
    assert (found.replacement.held, found.replacement.growth.shift) == (0, 4 * 64)
    assert found.replacement.saved(program, 64) == 20 * 64


def test_a_result_grows_over_an_operand_of_another_size():
    for window, shift, nbytes in (
        ({"size": 3}, 0, 24),
        ({"size": 4, "stride": 2}, 0, 24),
        ({"size": 3, "pad": 3}, 4, 28),
    ):
        program, splits = chain({"size": 1}, window)
        assert region(program, splits, 0, 1, 0, in_place=IN_PLACE) is None
        found = region(program, splits, 0, 1, 0, in_place=GROWING)
        validate_region(program, splits, found)
        assert found.replacement.growth == SegmentOverlap(0, shift * 64, nbytes * 64)


def test_an_operand_that_is_read_later_is_not_replaced():
    builder = RowBuilder()
    source = builder.tensor(12, 64)
    builder.join(builder.window(builder.window(source, size=1), size=1), source)
    program, splits = builder.program()
    assert region(program, splits, 0, 1, 0, in_place=IN_PLACE) is None
    assert region(program, splits, 0, 2, 0, in_place=IN_PLACE).replacement.operands == (0,)


def test_a_ring_waits_for_the_later_of_two_readers():
    """One reader takes each row at once; the other comes after a window over the first."""
    builder = RowBuilder()
    source = builder.window(builder.tensor(20, 64), size=1)
    late = builder.window(builder.window(source, size=5, pad=2), size=3, pad=1)
    builder.join(late, source)
    found = found_in(builder.program())
    assert [stage.held for stage in found.stages] == [5, 3, 1, 20]
    assert [stage.offset for stage in found.stages] == [-3, -1, 0, 0]


def test_a_ring_that_two_enlargements_read_half_a_row_apart():
    builder = RowBuilder()
    source = builder.window(builder.tensor(10, 64), size=1)
    early, late = builder.resize(source, 20), builder.resize(source, 20)
    builder.join(builder.window(early, size=3, pad=1), late)
    assert found_in(builder.program()).stages[0].held == 2


@pytest.mark.parametrize("rows, result", [(8, 16), (8, 24), (12, 8), (8, 12), (10, 25), (14, 6)])
def test_rates_that_are_no_whole_numbers(rows, result):
    builder = RowBuilder()
    last = builder.resize(builder.window(builder.tensor(rows, 64), size=1), result, after=1)
    builder.window(last, size=3, pad=1)
    found_in(builder.program())


@pytest.mark.parametrize("rows, result", [(8, 16), (5, 15), (12, 6), (12, 4)])
def test_pictures_of_half_or_twice_the_size_need_a_few_rows(rows, result):
    builder = RowBuilder()
    last = builder.resize(builder.window(builder.tensor(rows, 64), size=1), result, after=1)
    builder.window(last, size=3, pad=1)
    stages = found_in(builder.program()).stages
    assert stages[0].period * rows == stages[1].period * result
    assert [stage.held for stage in stages[:2]] == [2, 3]


def test_a_sum_takes_each_row_once_and_leaves_no_whole_operand():
    builder = RowBuilder()
    builder.sum(builder.window(builder.tensor(12, 64), size=1), 5)
    case = builder.program()
    found = found_in(case, group=2)
    assert found.stages[1].operand == 0 and found.stages[1].extent == 12 and found.nbytes(case[0]) == 2 * 64


def test_a_branch_of_several_steps_waits_for_the_one_that_joins_it():
    builder = RowBuilder()
    one, other = builder.tensor(12, 64), builder.tensor(12, 64)
    first = builder.window(one, size=3, pad=1)
    branch = builder.window(builder.window(other, size=3, pad=1), size=3, pad=1)
    builder.join(first, branch)
    found = found_in(builder.program())
    assert [stage.held for stage in found.stages] == [1, 3, 1, 12]


def test_a_sum_that_a_waiting_step_reads_is_not_taken_for_rows():
    """The branch is found to be summed up only after a step that reads the sum was taken in."""
    builder = RowBuilder()
    one, other = builder.tensor(6, 6), builder.tensor(6, 6)
    first = builder.window(one, size=1)
    branch = builder.window(other, size=1)
    total = builder.window(builder.sum(branch, 6), size=1)
    builder.join(builder.join(first, branch), total)
    program, splits = builder.program()
    assert region(program, splits, 0, len(program.steps) - 1, 0) is None


def test_a_tensor_that_is_read_along_both_axes_is_not_split():
    builder = RowBuilder()
    one, other = builder.tensor(6, 6), builder.tensor(6, 6)
    first, branch = builder.window(one, size=1), builder.window(other, size=1)
    straight = windows(6, 1)
    crossing = builder.step((branch, branch), (6, 6), Rows(0, 6, ((0, straight), (1, along(1, straight)))))
    builder.join(first, crossing)
    program, splits = builder.program()
    assert region(program, splits, 0, len(program.steps) - 1, 0) is None


def test_groups_that_do_not_divide_rows_overlap_in_the_end():
    case = chain({"size": 1}, {"size": 1}, rows=11)
    for group in range(2, 12):
        found = region(*case, 0, 1, 0, group)
        assert found.nbytes(case[0]) == group * 64 and [stage.lockstep for stage in found.stages] == [group < 11, False]
        validate_region(*case, found)
    assert region(*case, 0, 1, 0, 12) is None
    shorter = chain({"size": 1}, {"size": 2}, rows=12)  # 12 rows, then 11
    assert not any(stage.lockstep for stage in region(*shorter, 0, 1, 0, 3).stages[:-1])


def test_sums_take_the_rows_left_by_whole_groups():
    builder = RowBuilder()
    builder.sum(builder.window(builder.tensor(12, 64), size=1), 5)
    case = builder.program()
    for group in range(1, 13):
        found = region(*case, 0, 1, 0, group)
        pieces = [(piece.extent, piece.group, row) for piece, row in found.stages[1].pieces]
        assert found.nbytes(case[0]) == group * 64
        assert pieces == [(12 - 12 % group, group, 0), *[(12 % group, 12 % group, 12 - 12 % group)] * (12 % group > 0)]
        validate_region(*case, found)
    assert region(*case, 0, 1, 0, 13) is None


def test_groups_that_do_not_divide_rows_are_not_stored_over_operands():
    case = chain({"size": 1}, {"size": 3, "pad": 1}, {"size": 1}, rows=12)
    assert [group for group in range(1, 14) if region(*case, 0, 2, 0, group, in_place=IN_PLACE)] == [1, 2, 3, 4, 6, 12]


def test_what_is_viewed_is_not_read_row_by_row_but_may_be_made():
    program, splits = chain({"size": 1}, {"size": 1}, {"size": 1})
    whole = program.tensors[2]
    view = replace(program, tensors=(*program.tensors, whole), views=(View(4, 2),))
    steps = (*view.steps[:2], replace(view.steps[2], reads=(4,)))
    view = replace(view, steps=steps)
    assert region(view, splits, 0, 2, 0) is None
    assert region(view, splits, 0, 1, 0).results == (2,)


def test_a_step_that_reads_all_of_what_is_made_ends_the_region():
    builder = RowBuilder()
    source = builder.window(builder.tensor(8, 8), size=1)
    builder.step((source,), (8, 8))
    program, splits = builder.program()
    assert region(program, splits, 0, 0, 0) and region(program, splits, 0, 1, 0) is None
