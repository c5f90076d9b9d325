"""Orders that do not matter are left out; the two best, and the best of each kind, are those of all orders."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

pytest.importorskip("tvm")

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.streaming.partition import best_partition, partition_within
from passfit.passes.program.cut_sums import CutSums
from passfit.program.form import form_key
from passfit.search.refine import partitions
from passfit.search.refine.split_plan import SplitPlan, promising

from ...memory.rowwise import RowBuilder, row_programs

pytestmark = pytest.mark.tvm


class Here:
    """Run tasks in this process."""

    def run(self, tasks):
        return [task.run(None) for task in tasks]


def plan_of(case, cut: bool) -> SplitPlan:
    program, splits = case
    return SplitPlan((CutSums(),) if cut else (), program, splits, form_key(program, splits), 64)


def by_kind(plans) -> list:
    return [
        min(kind, key=lambda plan: plan.nbytes)
        for cut in (False, True)
        if (kind := [each for each in plans if each.cut == cut])
    ]


@given(st.lists(st.tuples(row_programs(most=5), st.booleans()), min_size=1, max_size=8), st.integers(0, 8))
def test_plans_that_matter_are_those_of_the_best_partitions_of_all_orders(cases, shared):
    plans = [plan_of(*case) for case in cases]
    found = partitions.Partitions(Here())
    # candidates that share forms, at limits of their own
    asked = [((), plans), ((), plans[shared:])]
    exact = {plan.form: best_partition(plan.program, plan.splits, 64) for plan in plans}
    for (_, of_one), along in zip(asked, found.along(asked)):
        complete = [partitions.along(plan, exact[plan.form]) for plan in of_one]
        assert promising(along) == promising(complete)
        assert by_kind(along) == by_kind(complete)


def test_a_plan_above_the_two_best_is_partitioned_once_within_their_bytes(monkeypatch):
    """Plans of more and more bytes: those after the two likely ones are asked for a path within the second's."""
    asked = []

    def stored(form, program, splits, alignment, most):
        asked.append(most)
        return partition_within(most, program, splits, alignment)

    def column(rows: int):
        builder = RowBuilder()
        builder.window(builder.window(builder.tensor(rows, 4), size=3, pad=1), size=3, pad=1)
        return builder.program()

    monkeypatch.setattr(partitions, "stored_partition", stored)
    plans = [plan_of(column(rows), cut=False) for rows in (512, 256, 64, 128)]
    (found,) = partitions.Partitions(Here()).along([((), plans)])
    assert [plan.form for plan in found] == [plan.form for plan in plans[2:]]
    second = max(plan.nbytes for plan in found)
    assert asked == [math.inf, math.inf, second, second]


def test_of_plans_of_equal_bytes_those_after_the_two_best_are_given_up():
    """Two forms of one program, after a better one: the second is asked for less than the first takes."""

    def column(rows: int, name: str) -> SplitPlan:
        builder = RowBuilder()
        builder.window(builder.window(builder.tensor(rows, 4), size=3, pad=1), size=3, pad=1)
        return replace(plan_of(builder.program(), cut=False), form=name)

    plans = [column(64, "best"), column(128, "second"), column(128, "equal")]
    (found,) = partitions.Partitions(Here()).along([((), plans)])
    assert [plan.form for plan in found] == ["best", "second"]
