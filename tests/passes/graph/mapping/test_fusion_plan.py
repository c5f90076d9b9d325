"""The search of fusion plans, against trying all of them."""

from __future__ import annotations

from itertools import combinations
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit.passes.graph.mapping import fusion_plan
from passfit.passes.graph.mapping.fusion_plan import PlanSearch
from passfit.passes.graph.mapping.plan_account import GroupCost, evaluate_plan, group_of
from passfit.passes.graph.mapping.value_sets import Values, value_sets

from .... import strategies  # noqa: F401  (the settings of hypothesis)
from ....profiles import examples


@st.composite
def graphs(draw: st.DrawFn) -> Values:
    inputs, count = draw(st.integers(1, 2)), draw(st.integers(1, 7))
    reads: list[tuple[int, ...] | None] = [None] * inputs
    for number in range(inputs, inputs + count):
        reads.append(tuple(draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3))))
    nbytes = tuple(draw(st.sampled_from([0, 1, 2, 3, 5, 8])) for _ in reads)
    computed = st.integers(inputs, inputs + count - 1)
    exist = frozenset(draw(st.lists(computed, max_size=2)))
    return Values(tuple(reads), nbytes, exist | {inputs + count - 1}, frozenset({inputs + count - 1}))


@st.composite
def costs(draw: st.DrawFn):
    """A cost that depends on every value in a group, some pairs of which are not legal."""
    weight = draw(st.lists(st.integers(0, 9), min_size=10, max_size=10))
    workspace = draw(st.lists(st.integers(0, 4), min_size=10, max_size=10))
    apart = draw(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3))
    saving = draw(st.integers(0, 12))

    def cost(group: frozenset[int]) -> GroupCost | None:
        if any(one != other and one in group and other in group for one, other in apart):
            return None
        time = 20 + sum(weight[each % 10] for each in group) - saving * (len(group) - 1) + (len(group) % 3)
        return GroupCost(time, workspace[max(group) % 10] * (len(group) - 1), frozenset({max(group) - 1}))

    return cost


def _order(plan, by_peak: bool):
    ram = plan.peak + plan.workspace
    return (ram, plan.time) if by_peak else (plan.time, ram)


def _all(values: Values, cost):
    computed = [each for each, reads in enumerate(values.reads) if reads is not None]
    last = {each: any(each in (reads or ()) for reads in values.reads) for each in computed}
    must = values.exist | values.outputs | {each for each in computed if not last[each]}
    free = [each for each in computed if each not in must]
    for size in range(len(free) + 1):
        for chosen in combinations(free, size):
            plan = evaluate_plan(values, cost, frozenset(must | set(chosen)))
            if plan is not None:
                yield plan


@settings(max_examples=examples(150))
@given(values=graphs(), cost=costs(), by_peak=st.booleans())
def test_the_plan_is_the_best_of_all(values: Values, cost, by_peak: bool):
    found = PlanSearch(values, cost, by_peak=by_peak, width=1 << 20).best()
    best = min(_order(plan, by_peak) for plan in _all(values, cost))
    assert _order(found, by_peak) == best
    # time and peak are those of the plan
    again = evaluate_plan(values, cost, found.exist)
    assert again is not None
    assert (again.peak, again.workspace, again.time) == (found.peak, found.workspace, found.time)


@settings(max_examples=examples(80))
@given(values=graphs(), cost=costs(), by_peak=st.booleans(), width=st.integers(1, 3))
def test_a_narrow_search_is_no_worse_than_no_fusion_or_another_plan(values: Values, cost, by_peak: bool, width: int):
    others = list(_all(values, cost))[:3]
    found = PlanSearch(values, cost, by_peak=by_peak, width=width).best([each.exist for each in others])
    computed = frozenset(each for each, reads in enumerate(values.reads) if reads is not None)
    unfused = evaluate_plan(values, cost, computed)
    assert unfused is not None
    assert all(_order(found, by_peak) <= _order(each, by_peak) for each in (unfused, *others))
    assert found == PlanSearch(values, cost, by_peak=by_peak, width=width).best([each.exist for each in others])


@settings(max_examples=examples(150))
@given(values=graphs(), cost=costs(), width=st.integers(2, 4))
def test_a_limit_found_by_a_narrower_search_costs_nothing(values: Values, cost, width: int) -> None:
    with patch.object(fusion_plan, "NARROW", width):
        without = PlanSearch(values, cost, by_peak=True, width=width).best()
    with patch.object(fusion_plan, "NARROW", 1):
        found = PlanSearch(values, cost, by_peak=True, width=width).best()
    assert _order(found, True) <= _order(without, True)


@settings(max_examples=examples(80))
@given(values=graphs(), cost=costs(), by_peak=st.booleans())
def test_groups_read_only_what_exists_and_form_no_circle(values: Values, cost, by_peak: bool):
    exist = PlanSearch(values, cost, by_peak=by_peak).best().exist
    assert values.exist | values.outputs <= exist | {each for each, reads in enumerate(values.reads) if reads is None}
    for result in exist:
        group = group_of(values, exist, result)
        assert max(group) == result and group & exist == {result}
        for member in group:
            for each in values.reads[member] or ():
                assert each in group or each in exist or values.reads[each] is None
                assert each < result  # groups run in the order of their results


@given(graphs(), costs(), st.sampled_from([2, 1 << 20]))
def test_a_plan_is_the_same_after_plans_by_other_costs(values: Values, cost, width: int) -> None:
    """Answers about sets are kept for a graph: they must not depend on costs or objectives."""
    value_sets.cache_clear()
    expected = PlanSearch(values, cost, by_peak=True, width=width).best()
    PlanSearch(
        values, lambda group: GroupCost(1.0, 0, group) if len(group) < 3 else None, by_peak=False, width=width
    ).best()
    assert PlanSearch(values, cost, by_peak=True, width=width).best() == expected


@given(graphs(), costs())
def test_the_bytes_and_time_of_the_search_are_those_of_its_groups(values: Values, cost) -> None:
    found = PlanSearch(values, cost, by_peak=True).best()
    counted = evaluate_plan(values, cost, found.exist)
    assert counted is None or (counted.peak, counted.workspace, counted.time) == (
        found.peak,
        found.workspace,
        found.time,
    )
