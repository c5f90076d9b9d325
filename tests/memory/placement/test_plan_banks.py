"""Test the laws of plans over several memories."""

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.errors import PlanError
from passfit.memory import ALIGNMENT, Bank, SavedPlan, plan_arena, read_plan, share, validate_plan, write_plan
from passfit.memory.placement.plan_banks import RESERVE, Room, excess_of, plan_banks, plan_on, rooms_of
from passfit.memory.placement.traffic import traffic
from passfit.targets import get_target

from ...profiles import examples
from ...strategies import chain, programs
from ..loops import with_loop
from ..shared_programs import outputs, sharing_programs


@st.composite
def rooms(draw, most: int = 12) -> tuple[Room, ...]:
    """Two or three memories of a few hundred bytes, of any speed."""
    sizes = draw(st.lists(st.integers(0, most), min_size=2, max_size=3))
    return tuple(
        Room(f"m{number}", size * ALIGNMENT, (False, draw(st.integers(0, 2)))) for number, size in enumerate(sizes)
    )


def banked(program, memories):
    return plan_banks(program, plan_arena(program), memories, ALIGNMENT)


@given(programs(), rooms())
def test_every_plan_over_memories_is_valid_and_computes_the_same(program, memories):
    plan = banked(program, memories)
    validate_plan(program, plan, ALIGNMENT)
    assert outputs(program, plan) == outputs(program, plan_arena(program))
    assert {bank.region for bank in plan.banks} <= {room.region for room in memories}


@settings(max_examples=examples(60))
@given(sharing_programs(), rooms())
def test_storages_with_several_tensors_stay_whole(program, memories):
    program = share(program)
    plan = banked(program, memories)
    validate_plan(program, plan, ALIGNMENT)
    assert outputs(program, plan) == outputs(program, plan_arena(program))


@given(programs(), rooms())
def test_a_block_that_fits_the_first_memory_stays_as_it_is(program, memories):
    plan = plan_arena(program)
    first = replace(memories[0], size=plan.arena)
    assert plan_banks(program, plan, (first, *memories[1:]), ALIGNMENT) is plan


@given(programs(), rooms())
def test_a_wall_costs_at_most_one_largest_buffer(program, memories):
    plan = plan_arena(program)
    largest = max((-(-each.nbytes // ALIGNMENT) * ALIGNMENT for each in program.buffers), default=0)
    needed = plan.arena + largest * (len(memories) - 1)
    slowest = max(memories, key=lambda room: (room.slowness, memories.index(room)))
    short = needed - sum(room.size for room in memories)
    enough = tuple(replace(room, size=room.size + max(0, short)) if room is slowest else room for room in memories)
    assert excess_of(plan_banks(program, plan, enough, ALIGNMENT), enough) == 0


@given(programs(), rooms())
def test_more_room_is_never_worse_than_one_block(program, memories):
    plan = plan_arena(program)
    over = excess_of(banked(program, memories), memories)
    assert over <= max(0, min(plan.arena - room.size for room in memories))
    assert over >= plan.bound - sum(room.size for room in memories)


@given(programs(), rooms(), st.data())
def test_a_buffer_across_a_wall_is_refused(program, memories, data):
    plan = banked(program, memories)
    pieces = data.draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    sizes = [piece * ALIGNMENT for piece in pieces]
    walls = list(accumulate(sizes))
    moved = replace(plan, banks=tuple(Bank(f"b{number}", size) for number, size in enumerate(sizes)))
    padded = [
        (low, low + -(-each.nbytes // ALIGNMENT) * ALIGNMENT)
        for low, each in zip(plan.offsets, program.buffers, strict=True)
    ]
    crossed = any(low < wall < high for wall in walls for low, high in padded)
    if walls[-1] == plan.arena and not crossed:
        validate_plan(program, moved, ALIGNMENT)
    else:
        with pytest.raises(PlanError, match="crosses the end of bank|are not parts of an arena"):
            validate_plan(program, moved, ALIGNMENT)


@pytest.mark.parametrize(
    "banks",
    [
        (Bank("a", 1280),),
        (Bank("a", 1280), Bank("a", 640)),
        (Bank("a", 1920), Bank("b", 0)),
        (Bank("a", 1000), Bank("b", 920)),
    ],
)
def test_banks_that_are_no_parts_of_the_arena_are_refused(banks):
    program = chain(640, 1280, 64, 320)
    validate_plan(program, replace(plan_arena(program), banks=(Bank("a", 1920),)), 64)
    with pytest.raises(PlanError, match="bank"):
        validate_plan(program, replace(plan_arena(program), banks=banks), 64)


def test_the_busiest_buffers_are_in_the_fastest_memory():
    """Of eight buffers of 128 bytes each, a step reads one: it belongs into the memory without wait states."""
    program = chain(*[128] * 9)
    steps = tuple(
        replace(step, reads=(*step.reads, *([0] * (number > 0)))) for number, step in enumerate(program.steps)
    )
    program = replace(program, steps=steps)
    moved = traffic(program)[0]
    assert moved[0] == 8 * 128 == max(moved) and moved[1] == 2 * 128 and moved[8] == 128
    plan = banked(program, (Room("slow", 256, (False, 5)), Room("fast", 128, (False, 0))))
    assert [bank.region for bank in plan.banks] == ["fast", "slow"] and plan.offsets[0] == 0


def test_a_loop_moves_its_tensors_in_each_trip():
    saved = with_loop()
    (outer,) = saved.program.steps
    moved = traffic(saved.program)[0]
    assert len(moved) == len(saved.program.buffers) and sum(moved) > sum(
        saved.program.tensors[each].nbytes for each in (*outer.reads, *outer.writes)
    )


def test_the_next_memory_alone_comes_before_two():
    program = chain(640, 1280, 64, 320)
    plan = banked(program, (Room("small", 1856), Room("large", 1920), Room("larger", 4096)))
    assert plan.banks == (Bank("large", 1920),) and plan.offsets == plan_arena(program).offsets


def test_a_plan_over_memories_survives_its_file(tmp_path):
    program = chain(640, 1280, 64, 320)
    plan = banked(program, (Room("a", 1280), Room("b", 640)))
    assert plan.banks == (Bank("a", 1280), Bank("b", 640)) and plan.arena == 1920 and plan.proved
    write_plan(saved := SavedPlan(program, plan, 64), tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == saved


def test_the_room_of_a_target_is_its_memories_without_stack_and_workspace():
    target = get_target("stm32f746").with_rooms({"sram1": 64 << 10})
    assert [(room.region, room.size) for room in rooms_of(target, 100)] == [
        ("sram1", ((64 << 10) - 100) // 64 * 64), ("dtcm", 64 << 10), ("sram2", 16 << 10)
    ]  # fmt: skip
    assert min(rooms_of(target, 0), key=lambda room: room.slowness).region == "dtcm"


def test_less_is_kept_for_the_stack_if_nothing_fits_otherwise():
    program, target = chain(640, 1280, 64, 320), get_target("stm32f746")
    plan = plan_arena(program)
    for kept, other, regions in (
        (RESERVE, 64, []),
        (RESERVE - 64, 1920, ["dtcm"]),
        (RESERVE - 64, 64, []),
        (64, 64, []),
    ):
        small = target.with_rooms({"sram1": kept + plan.arena, "dtcm": other, "sram2": 64})
        assert [bank.region for bank in plan_on(program, plan, small, 0).banks] == regions


@pytest.mark.parametrize("stack", [64, 192, RESERVE - 64])
def test_all_bytes_that_are_left_are_kept_for_the_stack(stack: int):
    """640 and 1,280 bytes are alive at once: 1,280 in one memory and 640 in the other is the least room."""
    program = chain(640, 1280, 64, 320)
    small = get_target("stm32f746").with_rooms({"sram1": 1280 + stack, "dtcm": 640, "sram2": 0})
    banks = plan_on(program, plan_arena(program), small, 0).banks
    assert {(bank.region, bank.size) for bank in banks} == {("sram1", 1280), ("dtcm", 640)}
