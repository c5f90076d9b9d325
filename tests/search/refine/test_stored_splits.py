"""A stored plan of splits is the plan, and is made once."""

from __future__ import annotations

import pytest

pytest.importorskip("tvm")

from hypothesis import HealthCheck, given, settings

from passfit.memory.streaming.partition import best_partition
from passfit.memory.streaming.rematerialise import best_repeats, work_of
from passfit.program.form import form_key
from passfit.search.refine import stored_splits
from passfit.search.refine.split_plan import SplitPlan
from passfit.support.result_store import ResultStore

from ...memory.rowwise import row_programs

pytestmark = pytest.mark.tvm
STEPS = 200


@given(row_programs(most=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_plan_read_back_equals_the_one_made(tmp_path, monkeypatch, case):
    program, splits = case
    form, work = form_key(program, splits), work_of(program, splits)
    path = best_partition(program, splits, 64)
    repeats = best_repeats(program, splits, work, 64, STEPS)
    plan = SplitPlan((), program, splits, form, 64, repeats.repeats, repeats.path.regions)
    sharings = [(least, passes) for least, passes, _ in plan.arrangements]
    with monkeypatch.context() as patched:
        for makers in ({}, dict.fromkeys(("partition_within", "best_repeats"))):  # the second time, nothing is made
            patched.setattr(stored_splits, "shared_store", lambda: ResultStore(tmp_path / "store.jsonl"))
            for name, none in makers.items():
                patched.setattr(stored_splits, name, none)
            assert stored_splits.stored_partition(form, program, splits, 64) == path
            assert stored_splits.stored_repeats(form, program, splits, 64, work, STEPS) == repeats
            assert SplitPlan((), program, splits, form, 64, repeats.repeats, repeats.path.regions).sharings == sharings
        for other in ((program, splits, 1, work), (program, splits, 64, work + 1)):
            with pytest.raises(TypeError):
                stored_splits.stored_repeats(form, *other, STEPS)


@given(row_programs(most=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_plan_knows_its_sharings_by_what_it_splits(monkeypatch, case):
    program, splits = case
    store = ResultStore(None)
    form = form_key(program, splits)
    path = best_partition(program, splits, 64)
    with monkeypatch.context() as patched:
        patched.setattr(stored_splits, "shared_store", lambda: store)
        for regions in (path.regions, ()):
            plan = SplitPlan((), program, splits, form, 64, (), regions)
            assert [least for least, _ in plan.sharings] == [least for least, _, _ in plan.arrangements]
