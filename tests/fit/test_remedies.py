"""Test what other settings of a search would give: the same choice among its candidates, made with them."""

from __future__ import annotations

from dataclasses import asdict, replace

from hypothesis import assume, given
from hypothesis import strategies as st

from passfit.fit.remedies import Remedy, faster_remedies, remedies_of_search
from passfit.fit.verdict import TargetLimits
from passfit.memory.footprint import Footprint
from passfit.search.settings import FASTEST, RAM, Aim
from passfit.search.tradeoff import CostPoint, choose

MOST = 1 << 20
STACK = 64
_points = st.lists(
    st.builds(
        CostPoint, st.just("state"), st.just(()), st.integers(1, 50), st.just(0), st.integers(1, 100), st.just(0.0), st.just(0),
        st.booleans(),
    ),
    min_size=1, max_size=8,
).map(lambda found: sorted(found, key=lambda each: each.ram))  # fmt: skip
_aims = st.builds(Aim, st.sampled_from([FASTEST, RAM]), st.integers(0, 60), st.just(MOST), st.none(), st.just(STACK))


def chosen(points: list[CostPoint], aim: Aim, slowdown: float | None) -> tuple[CostPoint, dict]:
    """Choose as a search does whose setting `max-slowdown` is given; return the object of its search.json too."""
    number, tradeoff = choose(
        replace(aim, max_slowdown=slowdown if aim.objective == RAM else None), points, lambda _: 0
    )
    return points[number], {"tradeoff": asdict(tradeoff), "made_from": {"max-slowdown": slowdown}}


def footprint(ram: int) -> Footprint:
    return Footprint(
        ram=ram, flash=9, arena=ram, workspace=0, weights=9, code=0, bound=0, floor=0, proved=False, kernels=1, sum=1
    )


def follow(remedy: Remedy, aim: Aim, slowdown: float | None) -> tuple[Aim, float | None]:
    """Return aim and slowdown after a remedy."""
    values = {each.key: each.value for each in remedy.settings}
    assert all(value != now for value, now in ((values.get("objective"), aim.objective), (values.get("ram"), aim.ram)))
    objective = values.get("objective", aim.objective)
    return replace(aim, objective=objective, ram=values.get("ram", aim.ram + STACK) - STACK), values.get(
        "max-slowdown", slowdown
    )


@given(_points, _aims, st.none() | st.floats(1, 3), st.integers(0, 9))
def test_less_ram_is_what_is_said_or_less_and_each_setting_is_needed(points, aim, slowdown, stack):
    point, search = chosen(points, aim, slowdown)
    for remedy in remedies_of_search(search, footprint(point.ram + stack)):
        found, _ = chosen(points, *follow(remedy, aim, slowdown))
        assert found.ram + stack <= remedy.ram < point.ram + stack
        assert remedy.lowers("ram", point.ram + stack, 9) and remedy.settings


@given(_points, _aims, st.none() | st.floats(1, 3), st.integers(0, STACK), st.integers(1, 200))
def test_less_time_is_what_is_said_or_less_within_the_devices_ram(points, aim, slowdown, stack, capacity):
    assume(aim.ram + STACK <= capacity)
    point, search = chosen(points, aim, slowdown)
    for remedy in faster_remedies(search, footprint(point.ram + stack), "targets.t.budget", capacity):
        found, _ = chosen(points, *follow(remedy, aim, slowdown))
        assert found.cycles <= 1.02 * remedy.time * point.cycles and remedy.time < 1
        assert remedy.ram <= capacity


def test_twice_the_extra_compute_is_said_with_all_that_it_needs():
    points = [replace(POINT, ram=40, cycles=30), replace(POINT, ram=50, cycles=10, whole=True)]
    levers = [
        {"lever": "split", "arena": 30, "extra_compute": 0.2},
        {"lever": "next", "arena": 22, "extra_compute": 0.404},
    ]
    _, search = chosen(points, Aim(RAM, 90, MOST), 1.25)
    slower, more = remedies_of_search(search | {"levers": levers}, footprint(57))
    assert (slower.options, slower.ram, slower.time) == ("--max-slowdown 3.0", 47, 3.0)
    assert (more.options, more.ram) == ("--max-extra-compute 0.41 --max-slowdown none", 39)
    assert more.entries == "max-extra-compute: 0.41, max-slowdown: null under search"
    assert more.say(57, 9) == f"{more.options}: ram 39 B instead of 57 B at 40.4 % extra arithmetic"
    nothing_fits = chosen(points, Aim(FASTEST, 9, MOST), 1.25)[1] | {"levers": levers}
    assert [each.options for each in remedies_of_search(nothing_fits, footprint(47))] == ["--max-extra-compute 0.41"]
    any_price = {"objective": RAM, "levers": levers}
    assert [each.options for each in remedies_of_search(any_price, footprint(47))] == ["--max-extra-compute 0.41"]
    assert remedies_of_search(any_price | {"made_from": {"max-latency": "1x"}}, footprint(47)) == []


def test_settings_are_written_by_section():
    points = [replace(POINT, ram=40, cycles=30), replace(POINT, ram=50, cycles=10, whole=True)]
    (faster,) = faster_remedies(chosen(points, Aim(RAM, 45, MOST), 4.0)[1], footprint(40), "targets.t.budget", MOST)
    assert faster.entries == "objective: fastest-within-budget under search and ram: 50 under targets.t.budget"
    assert faster.options == "--objective fastest-within-budget --budget ram=50"
    assert faster.fits(TargetLimits(50, 9)) and not faster.fits(TargetLimits(49, 9))


POINT = CostPoint("state", (), 1, 0, 1, 0.0, 0, False)
