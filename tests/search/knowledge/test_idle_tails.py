"""Laws of the tails that known models hardly needed."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.search.knowledge.family_table import ENOUGH
from passfit.search.knowledge.idle_tails import LEAST, idle_tails
from passfit.search.knowledge.record import KnownOutcome, KnownSequence

from .test_family_table import LISTS, OBJECTIVES


@given(LISTS, OBJECTIVES)
def test_no_graph_is_far_lower_by_an_idle_tail(some, objective):
    idle = idle_tails(some, objective)
    for record in some:
        for state in range(len(record.states)):
            costs = {tail: record.cost_of(state, number, objective) for number, tail in enumerate(record.tails)}
            if costs[record.tails[0]] is None:
                continue
            lowest = min((cost for cost in costs.values() if cost is not None), default=0.0)
            needed = [cost for tail, cost in costs.items() if cost is not None and tail not in idle]
            assert lowest >= min(needed, default=lowest) * (1 - LEAST)


@given(LISTS, st.data())
def test_the_order_of_the_models_does_not_matter(some, data):
    assert idle_tails(data.draw(st.permutations(some)), "ram") == idle_tails(some, "ram")


@given(LISTS.filter(bool))
def test_a_tail_that_lowers_one_graph_is_needed(some):
    """The second tail costs half as much as the first, on the first graph."""
    first, second = ("legalize", "fuse-operators"), ("legalize", "fuse-operators{depth=2}")
    state = replace(some[0].states[0], edges={}, outcomes=(0, 1))
    costs = (KnownOutcome(1.0, 1.0), KnownOutcome(0.5, 0.5))
    record = replace(some[0], tails=(first, second), states=(state,), outcomes=costs)
    assert second not in idle_tails([record], "ram")
    same = replace(record, outcomes=(costs[0], costs[0]), refined=KnownSequence((), second))
    assert second in idle_tails([same], "ram")
    assert second not in idle_tails([same] * ENOUGH, "ram"), "it led to the best of enough models"


def test_without_records_no_tail_is_idle():
    assert idle_tails((), "ram") == frozenset()
