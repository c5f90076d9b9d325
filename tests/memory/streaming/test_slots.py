"""Check slots shared by fresh rows against their laws."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.streaming.slots import FreshRows, assign_slots


@st.composite
def fresh_rows(draw: st.DrawFn) -> list[FreshRows]:
    """Draw the rows of a region: one result for each step."""
    count = draw(st.integers(0, 8))
    return [
        FreshRows(
            draw(st.integers(1, 20)),
            draw(st.sampled_from(["float32", "int8"])),
            step,
            draw(st.integers(step, count)),
            draw(st.booleans()),
        )
        for step in range(count)
    ]


@given(fresh_rows())
def test_rows_of_one_slot_are_never_there_at_one_step(fresh):
    slots = assign_slots(fresh)
    for (one, slot), (other, same) in combinations(zip(fresh, slots), 2):
        if slot is not None and slot == same:
            assert one.dtype == other.dtype and (one.last < other.first or other.last < one.first)


def room(fresh: list[FreshRows], slots: list[int | None]) -> list[int]:
    """Return the bytes of each slot: those of its largest rows."""
    numbers = sorted({slot for slot in slots if slot is not None})
    assert numbers == list(range(len(numbers)))
    return [max(each.nbytes for each, slot in zip(fresh, slots) if slot == number) for number in numbers]


@given(fresh_rows())
def test_rows_are_in_a_slot_unless_it_would_hold_nothing_else(fresh):
    slots = assign_slots(fresh)
    assert all(each.kept for each, slot in zip(fresh, slots) if slot is None)
    taken = sum(room(fresh, slots)) + sum(each.nbytes for each, slot in zip(fresh, slots) if slot is None)
    fullest = max((sum(e.nbytes for e in fresh if e.first <= step <= e.last) for step in range(9)), default=0)
    assert fullest <= taken <= sum(each.nbytes for each in fresh)


def test_a_chain_takes_turns():
    chain = [FreshRows(10 - step, "float32", step, step + 1, False) for step in range(4)]
    assert assign_slots(chain) == [0, 1, 0, 1] and room(chain, [0, 1, 0, 1]) == [10, 9]
