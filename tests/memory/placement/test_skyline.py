import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.placement.greedy import loads
from passfit.memory.placement.plan_arena import lowest
from passfit.memory.placement.skyline import fill, skyline_placement

from ..cut_rectangles import guillotine, loosened, woven
from .test_canonical import stacked
from .test_greedy import apart, box

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


@pytest.mark.parametrize("cut", [guillotine, woven])
def test_the_pieces_of_a_rectangle_fill_it(cut):
    pieces = cut(1, 150, 200, 2000)
    assert len(pieces) >= 150
    assert set(loads(pieces)) == {2000}
    assert lowest(loosened(1, pieces, 1.0), 0).height < 2000


@pytest.mark.parametrize("cut", [guillotine, woven])
@pytest.mark.parametrize("count", [150, 450])
def test_hard_instances_are_solved_near_their_bound(cut, count):
    """A fifth of the boxes gone or smaller; the greedy orders and the canonical search alone stay a fifth above."""
    found = loosened(0, cut(0, count, 200, 2000), 0.2)
    placed = lowest(found, 2_000_000)
    assert apart(found, placed.offsets)
    assert placed.height <= 1.1 * max(loads(found))
