"""Test the labelling's cost against that of brute force."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passfit.tuning.elimination import JointCosts, cheapest, total

from .. import strategies  # noqa: F401  (the settings of hypothesis)

_LABELS = 2


@st.composite
def problems(draw: st.DrawFn) -> tuple[int, list[JointCosts]]:
    """Draw a few vertices, and steps that read some and write one; label 0 is possible everywhere."""
    count = draw(st.integers(1, 8))
    found = []
    for _ in range(draw(st.integers(0, 8))):
        vertices = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True))
        size = _LABELS ** len(vertices)
        values = draw(st.lists(st.integers(0, 50) | st.just(float("inf")), min_size=size, max_size=size))
        table = np.array(values, float).reshape((_LABELS,) * len(vertices))
        table[(0,) * len(vertices)] = draw(st.integers(0, 50))
        found.append(JointCosts(tuple(vertices), table))
    return count, found


@given(problems())
def test_no_labels_cost_less(problem: tuple[int, list[JointCosts]]):
    count, costs = problem
    found = cheapest(count, costs)
    assert found.proved and found.cost == total(costs, found.labels)
    assert found.cost == min(total(costs, labels) for labels in product(range(_LABELS), repeat=count))


@given(problems(), st.integers(1, 3))
def test_what_is_too_wide_is_left_alone_and_costs_no_more_than_before(
    problem: tuple[int, list[JointCosts]], width: int
):
    count, costs = problem
    found = cheapest(count, costs, width)
    assert found.cost == total(costs, found.labels) <= total(costs, (0,) * count)
    if found.proved:
        assert found.cost == cheapest(count, costs).cost


@pytest.mark.parametrize("length", [1, 2, 60])
def test_a_long_chain_is_a_narrow_problem(length: int):
    costs = [JointCosts((n,), np.array([0.0, 1.0 if n % 3 else -3.0])) for n in range(length)]
    costs += [JointCosts((n, n + 1), np.array([[0.0, 1.0], [1.0, 0.0]])) for n in range(length - 1)]
    found = cheapest(length, costs, width=2)
    assert found.proved and found.labels[0] == 1
