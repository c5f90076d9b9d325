"""Compare the best partition with all partitions of the steps."""

import math
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.memory import bound, live_bytes
from passfit.memory.liveness import shared_floors
from passfit.memory.sharing.overlay import drop_empty_buffers, keeps_contents, overlay_operand
from passfit.memory.sharing.share import share
from passfit.memory.streaming.group_rows import MOST_ROWS
from passfit.memory.streaming.in_place import GROWING, IN_PLACE
from passfit.memory.streaming.merge_region import estimate_region
from passfit.memory.streaming.partition import apply_partition, best_partition, partition_within
from passfit.memory.streaming.partitioner import Partitioner
from passfit.memory.streaming.region import region
from passfit.memory.streaming.region_forms import KnownForms
from passfit.program import Program, Rows

from ...strategies import programs
from ..rowwise import RowBuilder, row_programs, windows


def alive_at(program: Program, step: int, alignment: int) -> int:
    return live_bytes(program, alignment)[step]


def in_its_place(program: Program) -> Program:
    """Put every result that may replace an operand in its place."""
    for step in program.steps:
        for overlay in step.in_place:
            program = overlay_operand(program, step, overlay)
            assert keeps_contents(program, program.tensors[step.writes[overlay.write]].buffer)
    return drop_empty_buffers(program)


def least_by_all_partitions(program, splits, alignment: int, over: int = IN_PLACE) -> int:
    """Try each run of steps singly, or as one by any axis; read the peak off the merged program."""

    @cache
    def edge(first: int, end: int) -> int | None:
        costs = [alive_at(program, first, alignment)] if end == first + 1 else []
        for axis in (0, 1):
            for in_place in (0, over):
                found = region(program, splits, first, end - 1, axis, 1, in_place)
                if found is not None:
                    costs.append(alive_at(in_its_place(estimate_region(program, found)[0]), first, alignment))
        return min(costs, default=None)

    @cache
    def least(first: int) -> int:
        if first == len(program.steps):
            return 0
        edges = {end: edge(first, end) for end in range(first + 1, len(program.steps) + 1)}
        return min(max(cost, least(end)) for end, cost in edges.items() if cost is not None)

    return least(0)


@given(row_programs(most=6), st.sampled_from([1, 64]))
def test_no_partition_is_better(case, alignment):
    program, splits = case
    assert best_partition(program, splits, alignment).nbytes == least_by_all_partitions(program, splits, alignment)


@given(row_programs(most=6), st.sampled_from([1, 64]))
def test_no_partition_is_better_where_results_grow(case, alignment):
    program, splits = case
    found = partition_within(math.inf, program, splits, alignment, growing=True)
    assert found.nbytes == least_by_all_partitions(program, splits, alignment, GROWING)


@given(row_programs(most=8), st.sampled_from([1, 64]), st.data())
def test_steps_that_run_whole_need_their_floors_whatever_else_is_streamed(case, alignment, data):
    program, splits = case
    regions = best_partition(program, splits, alignment).regions
    streamed = [each for each in regions if data.draw(st.booleans())]
    inside = {number for each in streamed for number in range(each.first, each.last + 1)}
    floors = [nbytes for number, nbytes in enumerate(shared_floors(program)) if number not in inside]
    split = apply_partition(program, splits, streamed)
    for shared in (split, share(split, alignment=alignment), in_its_place(split)):
        assert bound(shared, alignment) >= max(floors, default=0)


@settings(max_examples=50)
@given(st.lists(row_programs(most=8), min_size=2, max_size=4), st.sampled_from([1, 64]))
def test_regions_measured_for_another_program_are_those_of_this_one(cases, alignment):
    known = KnownForms(alignment)
    for case in (*cases, *cases):
        assert best_partition(*case, alignment, known) == best_partition(*case, alignment)


def test_windows_of_another_size_are_measured_anew():
    def column(size: int):
        builder = RowBuilder()
        last = builder.resize(builder.tensor(6, 64), 48)
        last = builder.window(builder.window(last, size=size, pad=size // 2), size=8, stride=8)
        return builder.program()

    known = KnownForms(64)
    for size in (9, 3, 5):
        assert best_partition(*column(size), 64, known) == best_partition(*column(size), 64)


@settings(max_examples=50)
@given(row_programs(most=12), st.integers(-100, 100))
def test_a_partition_within_bytes_is_the_best_or_none(case, more):
    best = best_partition(*case)
    assert partition_within(best.nbytes + more, *case) == (best if more >= 0 else None)


@given(row_programs(most=6), st.sampled_from([1, 64]))
def test_the_joined_program_needs_what_was_said_and_never_more_than_before(case, alignment):
    program, splits = case
    path = best_partition(program, splits, alignment)
    assert path.complete and path.reached == len(program.steps)
    assert path.nbytes <= bound(program, alignment=alignment)
    ends = [-1, *(number for each in path.regions for number in (each.first, each.last)), len(program.steps)]
    assert ends == sorted(ends)
    after = in_its_place(apply_partition(program, splits, path.regions))
    assert bound(after, alignment=alignment) == path.nbytes
    assert best_partition(program, splits, alignment) == path


def stack(rows: int = 48, columns: int = 64):
    """Build a small picture made large, twice, and small again."""
    builder = RowBuilder()
    last = builder.tensor(rows // 8, columns)
    last = builder.resize(last, rows)
    last = builder.window(last, size=3, pad=1)
    last = builder.window(last, size=8, stride=8)
    return builder.program()


def test_rows_are_taken_many_at_a_time_where_that_costs_nothing():
    program, splits = stack()
    (streamed,) = best_partition(program, splits).regions
    assert (streamed.first, streamed.last, streamed.axis) == (0, 2, 0)
    one_by_one = region(program, splits, 0, 2, 0, 1)
    assert streamed.group == 1 and one_by_one.nbytes(program) == (3 + 8) * 64


def test_the_group_is_the_largest_there_is_room_for():
    """The last two steps set the peak: the first may take as many rows at a time as fit below."""
    builder = RowBuilder()
    last = builder.tensor(8, 64)
    last = builder.window(builder.resize(last, 64), size=8, stride=8)
    wide = builder.step((last,), (32, 64))
    builder.step((wide,), (8, 64))
    program, splits = builder.program()
    path = best_partition(program, splits)
    assert path.nbytes == (8 + 32) * 64
    (streamed,) = path.regions
    assert 1 < streamed.group <= MOST_ROWS
    for group in range(streamed.group + 1, MOST_ROWS + 1):
        found = region(program, splits, streamed.first, streamed.last, streamed.axis, group)
        assert found is None or found.nbytes(program) + (8 + 8) * 64 > path.nbytes
    assert streamed.nbytes <= path.nbytes


def test_without_ways_to_split_there_is_one_path():
    builder = RowBuilder()
    builder.step((builder.step((builder.tensor(4, 64),), (16, 64)),), (4, 64))
    program, splits = builder.program()
    path = best_partition(program, splits)
    assert (path.regions, path.nbytes) == ((), 20 * 64)


def test_a_program_without_steps():
    path = best_partition(Program("empty", (), (), (), (), (), ()), {})
    assert path.complete and (path.regions, path.nbytes) == ((), 0)


@given(programs(), st.sampled_from([1, 64]))
def test_what_is_alive_at_a_step_alone_is_what_is_alive_around_it(program, alignment):
    paths = Partitioner(program, {}, alignment)
    assert paths.alone == [
        paths.bytes_around(step, step + 1) - paths._saved(step) for step in range(len(program.steps))
    ]


@pytest.mark.parametrize(("rows", "group"), [(32, 16), (101, 8), (49, 10), (9, 3)])
def test_groups_overlap_where_that_costs_less_than_small_ones(rows, group):
    builder = RowBuilder()
    by_row = Rows(0, rows, ((0, windows(rows, 1)),))
    narrow = builder.step((builder.step((builder.tensor(rows, 64),), (rows, 256), by_row),), (rows, 64), by_row)
    builder.step((narrow,), (3 * rows, 64))
    path = best_partition(*builder.program())
    assert path.nbytes == 256 * rows and [each.group for each in path.regions] == [group]
