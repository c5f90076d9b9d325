import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.placement.greedy import Box, Placement, conflicts, loads, neighbours, place_greedily
from passfit.memory.placement.plan_arena import lowest
from passfit.memory.placement.skyline import fill, skyline_placement

from ..cut_rectangles import guillotine, loosened, woven
from .test_greedy import apart, box

#: every greedy order leaves gaps in these, yet they fit below their bound: (start, end, size)
HARD = (
    "4-6-3 2-6-5 3-6-3 4-6-4 1-5-2 0-4-6 4-6-2 5-6-6 3-5-5",
    "2-4-6 3-5-6 3-5-4 4-5-9 1-4-1 0-2-1 0-2-8 1-4-6 2-5-3 0-3-8 2-5-3 0-4-1 2-5-5 3-5-1",
    "4-6-8 8-9-9 4-6-3 5-9-4 4-6-3 6-9-4 3-4-1 2-5-7 4-8-2 8-9-1 5-7-5 6-9-8 4-8-1 2-4-5",
    "5-7-6 5-7-4 3-7-5 1-5-8 4-6-4 6-7-8 4-7-3 1-2-1 4-5-1 3-6-7 5-7-1 2-7-5 4-6-2 6-7-2",
)
#: no placement of these is below their bound + 1, tried out over all 10! orders
ABOVE = "5-9-7 6-9-4 4-5-1 2-3-1 0-3-6 8-10-7 0-2-4 4-7-3 0-6-9 9-10-9"


def read(text: str) -> list[Box]:
    return [Box(*map(int, word.split("-"))) for word in text.split()]


def stacked(found) -> Placement:
    """Return the worst placement there is: nothing shares memory."""
    offsets = [sum(b.size for b in found[:i]) for i in range(len(found))]
    return Placement(tuple(offsets), sum(b.size for b in found))


boxes = st.lists(box(), min_size=1, max_size=14)


@given(boxes, st.lists(st.floats(0, 1), min_size=14, max_size=14), st.integers(0, 300))
def test_boxes_are_placed_apart_within_the_limit_or_some_are_missing(found, wanted, limit):
    offsets, missing, _ = fill(found, wanted, limit)
    if missing:
        assert all(offsets[number] < 0 for number in missing)
    else:
        assert apart(found, offsets)
        assert max(low + b.size for low, b in zip(offsets, found, strict=True)) <= max(limit, max(loads(found)))


@given(boxes, st.integers(0, 2000))
def test_settling_never_makes_a_placement_higher(found, work):
    placed = skyline_placement(found, stacked(found), max(loads(found)), work)
    assert apart(found, placed.offsets)
    assert placed.height == max(low + b.size for low, b in zip(placed.offsets, found, strict=True))
    assert max(loads(found)) <= placed.height <= stacked(found).height
    assert placed == skyline_placement(found, stacked(found), max(loads(found)), work)


@pytest.mark.parametrize("text", HARD)
def test_the_search_reaches_the_bound_where_no_greedy_order_does(text):
    found = read(text)
    near = neighbours(found)
    assert place_greedily(found, near, conflicts(found, near), 1, 0).height > max(loads(found))
    placed = skyline_placement(found, stacked(found), max(loads(found)), work=200_000)
    assert placed.height == max(loads(found))
    assert apart(found, placed.offsets)


def test_the_search_comes_as_near_to_a_bound_that_cannot_be_reached_as_any():
    placed = lowest(read(ABOVE))
    assert placed.height == max(loads(read(ABOVE))) + 1
    assert apart(read(ABOVE), placed.offsets)


@pytest.mark.parametrize("cut", [guillotine, woven])
def test_the_pieces_of_a_rectangle_fill_it(cut):
    pieces = cut(1, 150, 200, 2000)
    assert len(pieces) >= 150
    assert set(loads(pieces)) == {2000}
    assert lowest(loosened(1, pieces, 1.0), 0).height < 2000


@pytest.mark.parametrize("cut", [guillotine, woven])
@pytest.mark.parametrize("count", [150, 450])
def test_hard_instances_are_solved_near_their_bound(cut, count):
    """A fifth of the boxes gone or smaller; the greedy orders alone stay a fifth above."""
    found = loosened(0, cut(0, count, 200, 2000), 0.2)
    placed = lowest(found, 1_000_000)
    assert apart(found, placed.offsets)
    assert placed.height <= 1.1 * max(loads(found))
