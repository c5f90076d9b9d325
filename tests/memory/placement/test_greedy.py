from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.placement.greedy import (
    Box,
    conflicts,
    loads,
    neighbours,
    orders,
    place_greedily,
    place_lowest,
    promote,
)

from ..cut_rectangles import guillotine, loosened, woven


@st.composite
def box(draw) -> Box:
    start = draw(st.integers(0, 10))
    return Box(start, draw(st.integers(start + 1, 12)), draw(st.integers(1, 20)))


boxes = st.lists(box(), min_size=1, max_size=14)


def apart(found: list[Box], offsets) -> bool:
    return all(
        a.end <= b.start or b.end <= a.start or offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]
        for (i, a), (j, b) in combinations(enumerate(found), 2)
    )


@given(boxes)
def test_every_order_places_all_boxes_apart(found):
    near = neighbours(found)
    for order in orders(found, near):
        assert sorted(order) == list(range(len(found)))
        placed = place_lowest(found, conflicts(found, near), order)
        assert apart(found, placed.offsets)
        assert placed.height == max(low + b.size for low, b in zip(placed.offsets, found, strict=True))
        assert max(loads(found)) <= placed.height <= sum(b.size for b in found)


@given(boxes)
def test_neighbours_are_those_that_meet_in_time(found):
    near = neighbours(found)
    for i, a in enumerate(found):
        assert sorted(near[i]) == [
            j for j, b in enumerate(found) if j != i and a.start < b.end and b.start < a.end
        ]  # fmt: skip


@given(boxes)
def test_no_order_alone_places_lower(found):
    near = neighbours(found)
    placed = place_greedily(found)
    assert apart(found, placed.offsets)
    assert placed == place_greedily(found)
    alone = [place_lowest(found, conflicts(found, near), order).height for order in orders(found, near)]
    assert max(loads(found)) <= placed.height <= min(alone)


@pytest.mark.parametrize("cut", [guillotine, woven])
def test_the_pieces_of_a_rectangle_fill_it(cut):
    pieces = cut(1, 150, 200, 2000)
    assert len(pieces) >= 150
    assert set(loads(pieces)) == {2000}


@pytest.mark.parametrize("cut", [guillotine, woven])
def test_hard_instances_are_placed_within_a_fifth_of_their_bound(cut):
    """A fifth of the boxes gone or smaller."""
    found = loosened(0, cut(0, 150, 200, 2000), 0.2)
    placed = place_greedily(found)
    assert apart(found, placed.offsets)
    assert placed.height <= 1.2 * max(loads(found))


def test_the_lowest_gap_is_taken():
    # With the others placed, gaps of 1 and 5 are left below the top, for a box of 3.
    found = [Box(0, 3, 2), Box(0, 1, 5), Box(0, 3, 4), Box(1, 3, 3)]
    near = neighbours(found)
    assert place_lowest(found, conflicts(found, near), [0, 1, 2, 3]).offsets == (0, 2, 7, 2)


def test_the_boxes_at_the_top_are_promoted():
    found = [Box(0, 1, 1), Box(0, 1, 1), Box(0, 1, 1)]
    placed = place_lowest(found, conflicts(found, neighbours(found)), [0, 1, 2])
    assert promote([0, 1, 2], found, placed) == [2, 0, 1]
