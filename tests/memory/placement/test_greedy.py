from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.placement.greedy import Box, loads, neighbours, orders, place, promote


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
        for tightest in (False, True):
            placed = place(found, near, order, tightest=tightest)
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
def test_placing_stops_at_a_height_that_is_no_gain(found):
    near = neighbours(found)
    order = next(orders(found, near))
    height = place(found, near, order).height
    assert place(found, near, order, below=height) is None
    assert place(found, near, order, below=height + 1).height == height


def test_the_tightest_gap_is_taken_where_the_lowest_is_wide():
    # Gaps of 5 at offset 2 and of 3 at offset 8, for a box of 3.
    found = [Box(0, 2, 2), Box(0, 2, 1), Box(0, 2, 4), Box(1, 2, 3)]
    near = neighbours(found)
    fixed = [0, 7, 11, -1]
    assert place(found, near, [3], fixed=fixed).offsets[3] == 2
    assert place(found, near, [3], fixed=fixed, tightest=True).offsets[3] == 8


def test_the_boxes_at_the_top_are_promoted():
    found = [Box(0, 1, 1), Box(0, 1, 1), Box(0, 1, 1)]
    placed = place(found, neighbours(found), [0, 1, 2])
    assert promote([0, 1, 2], found, placed) == [2, 0, 1]
