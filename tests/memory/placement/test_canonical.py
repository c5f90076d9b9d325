import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.memory.placement.canonical import EXACT_BOXES, Work, lower_placement, set_aside
from passfit.memory.placement.greedy import Box, Placement, loads, neighbours, orders, place

from ...profiles import examples
from .. import brute_force
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


@settings(max_examples=examples(60))
@given(st.lists(box(), min_size=1, max_size=6))
def test_the_search_finds_the_least_height_of_few_boxes(found):
    placed = lower_placement(found, stacked(found), max(loads(found)), work=1)
    assert placed.height == brute_force.least_arena([(b.start, b.end - 1, b.size) for b in found])
    assert apart(found, placed.offsets)


@given(st.lists(box(), min_size=EXACT_BOXES + 1, max_size=24), st.sampled_from([0, 10, 300, 20_000]))
def test_the_search_never_makes_it_worse_whatever_work_it_has(found, work):
    before = place(found, neighbours(found), next(orders(found, neighbours(found))))
    after = lower_placement(found, before, max(loads(found)), work)
    assert max(loads(found)) <= after.height <= before.height
    assert apart(found, after.offsets)


@given(st.lists(box(), min_size=1, max_size=16), st.integers(0, 30))
def test_boxes_set_aside_fit_wherever_the_rest_is(found, above):
    near = neighbours(found)
    height = max(loads(found)) + above
    aside = set_aside(found, near, height)
    rest = [b for b in range(len(found)) if b not in aside]
    placed = place(found, near, rest)
    core = [placed.offsets[b] if b in rest else -1 for b in range(len(found))]
    if max((core[b] + found[b].size for b in rest), default=0) <= height:
        assert place(found, near, aside[::-1], fixed=core).height <= height


@pytest.mark.parametrize("text", HARD)
def test_the_search_reaches_the_bound_where_no_greedy_order_does(text):
    found = read(text)
    near = neighbours(found)
    greedy = [place(found, near, order, tightest=t).height for order in orders(found, near) for t in (False, True)]
    assert min(greedy) > max(loads(found))
    placed = lower_placement(found, stacked(found), max(loads(found)), work=400_000)
    assert placed.height == max(loads(found))
    assert apart(found, placed.offsets)


def test_the_search_refutes_a_bound_that_cannot_be_reached():
    found = read(ABOVE)
    placed = lower_placement(found, stacked(found), max(loads(found)), work=400_000)
    assert placed.height == max(loads(found)) + 1
    assert apart(found, placed.offsets)


def test_a_chain_is_set_aside_except_around_its_peak():
    found = [Box(i, i + 2, 1) for i in range(50)] + [Box(50, 52, 10), Box(51, 52, 10)]
    assert len(set_aside(found, neighbours(found), 21)) >= 50


def test_work_is_counted_down():
    work = Work(5)
    work.spend(5)
    assert work.left == 0
