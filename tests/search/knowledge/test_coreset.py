"""Laws of the greedy coreset."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from passfit.search.knowledge.coreset import coreset

MODELS = 4
_row = st.lists(st.integers(10, 40).map(lambda n: n / 10), min_size=MODELS, max_size=MODELS)
TABLES = st.dictionaries(st.sampled_from("abcdefg"), _row, max_size=7)
STARTS = st.just([4.0] * MODELS)


def reached(costs, start, names):
    return sum(min([start[model], *(costs[name][model] for name in names)]) for model in range(len(start)))


@given(TABLES, STARTS, st.integers(0, 3))
def test_it_reaches_at_least_its_share_of_the_best_set_of_its_size(costs, start, most):
    chosen = coreset(costs, start, most)
    best = min(reached(costs, start, names) for names in combinations(costs, min(most, len(costs))))
    gain, optimum = sum(start) - reached(costs, start, chosen), sum(start) - best
    assert len(chosen) <= most
    assert gain >= (1 - (1 - 1 / max(1, most)) ** most) * optimum - 1e-9


@given(TABLES, STARTS)
def test_each_is_worth_less_than_the_one_before_and_more_than_nothing(costs, start):
    chosen = coreset(costs, start, 7)
    levels = [reached(costs, start, chosen[:number]) for number in range(len(chosen) + 1)]
    gains = [before - after for before, after in pairwise(levels)]
    assert all(gain > 0 for gain in gains)
    assert all(earlier >= later - 1e-9 for earlier, later in pairwise(gains))


@given(TABLES, STARTS)
def test_all_that_can_be_reached_is_reached_when_there_is_room(costs, start):
    chosen = coreset(costs, start, 7)
    assert reached(costs, start, chosen) == reached(costs, start, costs)


@given(TABLES, STARTS, st.permutations(range(MODELS)))
def test_the_order_of_the_models_does_not_matter(costs, start, order):
    whole = {name: [round(10 * each) for each in row] for name, row in costs.items()}
    shuffled = {name: [row[model] for model in order] for name, row in whole.items()}
    assert coreset(whole, [40] * MODELS, 3) == coreset(shuffled, [40] * MODELS, 3)


@given(TABLES, STARTS, st.integers(1, 40).map(lambda n: n / 10))
def test_what_is_worth_too_little_is_left_out(costs, start, least):
    chosen = coreset(costs, start, 7, least)
    levels = [reached(costs, start, chosen[:number]) for number in range(len(chosen) + 1)]
    assert all(before - after > least * MODELS for before, after in pairwise(levels))
