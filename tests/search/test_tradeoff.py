"""The choice by ram, flash and cycles against its definition; flash is estimated only where it matters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.errors import ConfigError
from passfit.memory.footprint import Budget
from passfit.params.latency_limit import LatencyLimit
from passfit.search.settings import FASTEST, FLASH, RAM, Aim, SearchSettings, aim_of, objective_of
from passfit.search.tradeoff import CYCLE_MARGIN, FLASH_MARGIN, CostPoint, choose
from passfit.targets import get_target

HUGE = 1 << 40
MOST = 100
_POINTS = st.lists(st.tuples(st.integers(1, 8), st.integers(90, 110), st.integers(1, 8)), min_size=1, max_size=8)


def points(rows: list[tuple[int, int, int]]) -> tuple[list[CostPoint], list[int]]:
    """Make points of (ram, cycles, flash), the one of least ram first, and return their flash."""
    rows = sorted(rows, key=lambda row: row[0])
    made = [
        CostPoint(f"{number}", (), ram, 0, cycles, 0.0, MOST, whole=number % 3 == 1)
        for number, (ram, cycles, _) in enumerate(rows)
    ]
    return made, [row[2] for row in rows]


@given(_POINTS, st.integers(1, 8), st.integers(1, 8))
def test_the_fastest_that_fits_is_chosen_and_less_ram_decides_between_equals(rows, ram, flash):
    made, flashes = points(rows)
    chosen, found = choose(Aim(FASTEST, ram, flash), made, flashes.__getitem__)
    fitting = [number for number, each in enumerate(made) if each.ram <= ram and flashes[number] <= flash]
    assert found.within == bool(fitting)
    if not fitting:
        assert chosen == 0
        return
    fastest = min(made[number].cycles for number in fitting)
    assert chosen in fitting and made[chosen].cycles <= (1 + CYCLE_MARGIN) * fastest
    equals = [number for number in fitting if made[number].cycles <= (1 + CYCLE_MARGIN) * fastest]
    assert made[chosen].ram == min(made[number].ram for number in equals)
    assert 0 not in fitting or made[chosen].cycles <= (1 + CYCLE_MARGIN) * made[0].cycles


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 40), st.integers(1, 8)), min_size=1, max_size=8),
    st.integers(1, 8), st.integers(1, 8), st.sampled_from([1.0, 1.25, 2.0, 3.0]),
)  # fmt: skip
def test_no_plan_is_slower_than_allowed_unless_only_slower_ones_fit(rows, ram, flash, slowdown):
    made, flashes = points(rows)
    chosen, found = choose(Aim(RAM, ram, flash, slowdown), made, flashes.__getitem__)
    whole = [each.cycles for each in made if each.whole]
    assert found.whole == min(whole, default=None)
    quick = [number for number, each in enumerate(made) if not whole or each.cycles <= slowdown * min(whole)]
    fitting = [number for number, each in enumerate(made) if each.ram <= ram and flashes[number] <= flash]
    assert found.within == bool(fitting)
    if both := set(quick) & set(fitting):
        assert chosen in both and made[chosen].ram == min(made[number].ram for number in both)
    elif fitting:
        assert chosen in fitting and made[chosen].cycles <= (1 + CYCLE_MARGIN) * min(
            made[number].cycles for number in fitting
        )
    else:
        assert chosen in quick and made[chosen].ram == min(made[number].ram for number in quick)


@given(_POINTS, st.integers(1, 8))
def test_the_least_flash_that_fits_is_chosen(rows, ram):
    made, flashes = points(rows)
    chosen, found = choose(Aim(FLASH, ram, 8), made, flashes.__getitem__)
    fitting = [flashes[number] for number, each in enumerate(made) if each.ram <= ram]
    assert found.within == bool(fitting)
    assert not fitting or flashes[chosen] <= (1 + FLASH_MARGIN) * min(fitting)
    assert all(each.flash is not None for each in found.points)


@given(_POINTS)
def test_what_is_shown_is_the_front_the_least_ram_and_the_choice(rows):
    made, flashes = points(rows)
    chosen, found = choose(Aim(FASTEST, HUGE, HUGE), made, flashes.__getitem__)
    assert made[chosen].lever == found.points[found.chosen].lever
    assert found.points[0].ram == made[0].ram and min(each.cycles for each in made) == min(
        each.cycles for each in found.points
    )
    better = [(a, b) for a in found.points for b in found.points if a.ram < b.ram and a.cycles < b.cycles]
    assert all(b.lever in (made[0].lever, made[chosen].lever) for _, b in better)


def test_code_is_estimated_only_where_a_limit_of_flash_may_bind():
    made, _ = points([(1, 30, 1), (2, 20, 1), (3, 10, 1)])
    asked: list[int] = []

    def flash(number: int) -> int:
        asked.append(number)
        return {2: 100, 1: 9, 0: 8}[number]

    choose(Aim(FASTEST, 3, MOST), made, flash)
    assert asked == []
    assert choose(Aim(FASTEST, 3, 10), made, flash)[0] == 1
    assert asked == [2, 1]
    asked.clear()
    assert choose(Aim(FASTEST, 2, 10), made, flash)[0] == 1
    assert asked == [1]


@pytest.mark.parametrize(
    ("settings", "budget", "objective"),
    [
        (SearchSettings(), None, RAM),
        (SearchSettings(), Budget(), RAM),
        (SearchSettings(), Budget(ram=1), FASTEST),
        (SearchSettings(), Budget(flash=1), FASTEST),
        (SearchSettings(until="fits"), Budget(ram=1), RAM),
        (SearchSettings(max_latency=LatencyLimit(ratio=1.0)), Budget(ram=1), RAM),
        (SearchSettings(objective=RAM), Budget(ram=1), RAM),
        (SearchSettings(objective=FLASH), None, FLASH),
        (SearchSettings(objective=FASTEST), None, FASTEST),
    ],
)
def test_the_objective_is_the_fastest_where_there_is_a_budget(settings, budget, objective):
    assert objective_of(settings, budget) == objective


def test_without_a_budget_the_capacity_is_the_limit_and_the_stack_has_its_part_of_it():
    target = get_target("rpi4")
    stack = target.stack_reserve
    assert aim_of(SearchSettings(objective=FASTEST), None, target) == Aim(
        FASTEST, target.ram - stack, target.flash, stack=stack
    )
    assert aim_of(SearchSettings(), Budget(ram=7 + stack), target) == Aim(FASTEST, 7, target.flash, stack=stack)
    assert aim_of(SearchSettings(), None, target) == Aim(RAM, target.ram - stack, target.flash, 1.25, stack)
    assert aim_of(SearchSettings(), Budget(ram=stack - 7), target) == Aim(FASTEST, 0, target.flash, stack=stack - 7)


@pytest.mark.parametrize(
    ("settings", "slowdown"),
    [
        (SearchSettings(until="fits"), 1.25),
        (SearchSettings(objective=RAM, max_slowdown=3.0), 3.0),
        (SearchSettings(objective=RAM, max_slowdown=None), None),
        (SearchSettings(max_latency=LatencyLimit(ratio=1.0)), None),
    ],
)
def test_the_least_ram_is_within_reason_unless_the_time_is_limited_otherwise(settings, slowdown):
    target = get_target("rpi4")
    expected = None if slowdown is None else Aim(RAM, 7, target.flash, slowdown, target.stack_reserve)
    assert aim_of(settings, Budget(ram=7 + target.stack_reserve), target) == expected


def test_contradicting_objectives_are_refused():
    with pytest.raises(ConfigError, match="flash with max-latency"):
        objective_of(SearchSettings(objective=FLASH, max_latency=LatencyLimit(ratio=1.0)), None)
    with pytest.raises(ConfigError, match="fastst"):
        objective_of(SearchSettings(objective="fastst"), None)
