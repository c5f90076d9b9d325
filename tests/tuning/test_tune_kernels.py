"""Test the tuning of a few kernels: it ends, rejects wrong results, and its choices are replayed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit.kernels.schedule.candidates import Schedule
from passfit.kernels.schedule.choices import schedule_by_spec, schedule_choices
from passfit.kernels.schedule.tuned import ScheduleRequest, Tuning
from passfit.targets import get_target, how_to_run
from passfit.tuning.database import RULES
from passfit.tuning.measure.timed import TimingHarness
from passfit.tuning.meta_schedule import search_by_meta_schedule
from passfit.tuning.recorder import ScheduleRecorder
from passfit.tuning.tune_kernels import Countdown, finds_cold_caches, tune_kernels

from ..kernels.programs import lowered, random_inputs, run, weight
from .helpers import arranged_with, requests_of

HOST = get_target("x86-64")
pytestmark = [pytest.mark.tvm, pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")]


def small():
    def body(x):
        return relax.op.nn.relu(
            relax.op.add(relax.op.nn.conv2d(x, weight(16, 8, 3, 3), padding=1), weight(1, 16, 1, 1))
        )

    return lowered([(1, 8, 9, 9)], body)


def clock(seconds: float = 60.0) -> Countdown:
    return Countdown(seconds, lambda over: None)


def census_of(program) -> ScheduleRecorder:
    census = ScheduleRecorder()
    arranged_with(program, census)
    return census


def test_what_is_found_computes_the_same_and_needs_no_more():
    program, census = small(), census_of(small())
    found = tune_kernels(census, HOST, clock(4), seed=0, trials=0)
    assert len(found) == len(census.requests) == 1
    assert found[0].tried["rules"] > 1 and found[0].before > 0
    tuning = Tuning({each.fingerprint: each.spec for each in found if each.choice != RULES})
    (ours, workspace), (theirs, allowed) = arranged_with(program, tuning), arranged_with(program, Tuning())
    assert workspace <= allowed
    inputs = random_inputs(program)
    np.testing.assert_allclose(run(ours, inputs)[0], run(theirs, inputs)[0], rtol=1e-4, atol=1e-4)


def test_without_time_every_kernel_is_left_to_the_rules():
    (found,) = tune_kernels(census_of(small()), HOST, clock(0.0), seed=0, trials=8)
    assert (found.choice, found.tried) == (RULES, {})


@pytest.mark.fault("SIGKILL or Ctrl-C", "SIGINT during tuning", "what was found is written")
def test_ctrl_c_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch):
    asked = []

    def interrupted(*_: object) -> None:
        asked.append(_)
        raise KeyboardInterrupt

    monkeypatch.setattr("passfit.tuning.tune_kernels._tune_traces", interrupted)
    monkeypatch.setattr("passfit.tuning.tune_kernels.schedule_choices", lambda *of: list(schedule_choices(*of))[:4])
    (found,) = tune_kernels(census_of(small()), HOST, clock(), seed=0, trials=8)
    assert asked and found.tried["rules"] > 1


@pytest.fixture(scope="module")
def traces() -> tuple[ScheduleRequest, TimingHarness, list[tuple[float, str, Schedule]], str]:
    (request,) = requests_of(small())
    stand = TimingHarness(request, HOST, 0)
    found, note = search_by_meta_schedule(request, stand, HOST, 30.0, 0, 8, float("inf"))
    return request, stand, found, note


def test_meta_schedule_says_which_cost_model_it_had(traces):
    learned = importlib.util.find_spec("xgboost") is not None
    assert ("xgboost" if learned else "random") in traces[3]


def test_traces_replay_compute_the_same_and_keep_to_the_limits(traces):
    request, stand, found, _ = traces
    assert found
    for _, spec, schedule in found:
        assert schedule.workspace <= request.most and "T.parallel" not in schedule.kernel.script()
        again = schedule_by_spec.__wrapped__(request.kernel, request.repackable, request.machine, False, spec)
        assert again.kernel.script() == schedule.kernel.script()
        assert stand.agrees(schedule)


def test_caches_are_cold_for_models_that_no_cache_holds():
    assert finds_cold_caches(100 << 20) and not finds_cold_caches(1 << 20)
    (request,) = requests_of(lowered([(1, 512)], lambda x: relax.op.matmul(x, weight(512, 512))))
    assert TimingHarness(request, HOST, 0, cold=True).cost(request.rules) > 0


def test_a_schedule_that_computes_something_else_is_noticed():
    (request,) = requests_of(small())
    stand = TimingHarness(request, HOST, 0)

    def other(x):
        return relax.op.add(relax.op.nn.conv2d(x, weight(16, 8, 3, 3), padding=1), weight(1, 16, 1, 1))

    (without_relu,) = requests_of(lowered([(1, 8, 9, 9)], other))
    assert stand.agrees(request.rules) and not stand.agrees(without_relu.rules)
