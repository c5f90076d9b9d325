"""Compare the Pareto front of ram and latency with its definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tvm")

from passfit.params.latency_limit import LatencyLimit
from passfit.search.pareto import Point, front

_POINTS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=8)


def points(pairs: list[tuple[int, int]]) -> list[Point]:
    return [Point(f"{number}", (), ram, 0.0, float(latency)) for number, (ram, latency) in enumerate(pairs)]


@given(_POINTS)
def test_nothing_beats_a_point_of_the_front_and_something_equals_or_beats_every_other(pairs):
    found = front("ms", LatencyLimit(milliseconds=3), points(pairs), 1.0)
    on = [found.points[number] for number in found.pareto]

    def beats(one: Point, other: Point) -> bool:
        """No worse in both, and better in one."""
        return (
            one.ram <= other.ram
            and one.latency <= other.latency
            and (one.ram, one.latency) != (other.ram, other.latency)
        )

    assert not any(beats(one, other) for one in found.points for other in on)
    assert all(any(one.ram <= each.ram and one.latency <= each.latency for one in on) for each in found.points)
    assert [each.ram for each in on] == sorted({each.ram for each in on})


@given(_POINTS, st.integers(1, 6))
def test_the_least_ram_within_the_limit_is_chosen_or_the_fastest(pairs, most):
    found = front("ms", LatencyLimit(milliseconds=most), points(pairs), 1.0)
    chosen, fitting = found.points[found.chosen], [each for each in pairs if each[1] <= most]
    assert found.within == bool(fitting)
    if fitting:
        assert chosen.latency <= most and chosen.ram == min(ram for ram, _ in fitting)
    else:
        assert chosen.latency == min(latency for _, latency in pairs)


def test_a_ratio_is_one_of_the_reference():
    found = front("instructions", LatencyLimit(ratio=1.5), points([(1, 40), (2, 29), (3, 20)]), 20.0)
    assert found.most == 30.0 and found.points[found.chosen].ram == 2 and found.limit == "1.5x"
