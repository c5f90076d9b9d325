"""Test the choice of layouts: the cheapest as measured, at no cost of ram."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("tvm")

from hypothesis import given, settings
from hypothesis import strategies as st

from passfit import api
from passfit.errors import SequenceError
from passfit.kernels.lower.lower import Lowered
from passfit.kernels.schedule.candidates import Schedule
from passfit.kernels.schedule.tuned import ScheduleRequest
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.apply import apply_program_passes
from passfit.passes.sequence.catalogue import parse_spec
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.report.tuning_table import tuning_table
from passfit.targets import get_target, how_to_run
from passfit.tuning import tune_kernels as tune
from passfit.tuning import tune_model as tuned
from passfit.tuning.choose_layout import choose_layout
from passfit.tuning.database import LibraryComparison
from passfit.tuning.measure import choose_harness

from .. import strategies  # noqa: F401  (the settings of hypothesis)
from ..kernels.rewrite.test_channels_last import branches
from ..profiles import examples
from ..report.rendered import words

HOST = get_target("x86-64")
pytestmark = pytest.mark.tvm
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")


class Made:
    """Harnesses with invented costs."""

    def __init__(self, cost: Callable[[ScheduleRequest], float]):
        self._cost = cost
        self.asked = 0

    def of(self, request: ScheduleRequest) -> _Harness:
        self.asked += 1
        return _Harness(self._cost(request))

    def build(self, schedules: list[Schedule]) -> None:
        pass


class _Harness:
    def __init__(self, cost: float):
        self._cost = cost

    def build(self, schedules: list[Schedule]) -> None:
        pass

    def cost(self, schedule: Schedule) -> float:
        return self._cost


@pytest.fixture(scope="module")
def network() -> Lowered:
    return branches()


def planned(program: Lowered, *passes: object) -> tuple[int, int]:
    scheduled, workspace = apply_program_passes(program, [*passes, parse_spec("share"), parse_spec("order")])
    return checked_plan(scheduled.program, HOST).arena, workspace


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 10**6))
def test_no_choice_costs_ram_and_none_is_dearer_than_planes(network: Lowered, seed: int):
    made = Made(lambda request: 1 + int(request.fingerprint, 16) % (seed + 7) % 97)
    found = choose_layout(network, made, lambda: True)
    assert found.proved and found.after <= found.before and made.asked > found.tried > 0
    if found.layout is not None:
        assert found.after < found.before
        (arena, workspace), (allowed, most) = planned(network, found.layout), planned(network)
        assert arena <= allowed and workspace <= max(most, HOST.machine.register_bytes)


def test_without_time_results_stay_as_they_are(network: Lowered):
    made = Made(lambda request: 1.0)
    found = choose_layout(network, made, lambda: False)
    assert (found.layout, made.asked) == (None, 0)


def test_what_is_no_faster_is_left_alone(network: Lowered):
    assert choose_layout(network, Made(lambda request: 1.0), lambda: True).layout is None


def test_a_kernel_there_was_no_time_for_stays_as_it_is(network: Lowered):
    kernels = {step.kernel for step in network.program.steps}
    turns = iter([True] * len(kernels))
    found = choose_layout(network, Made(lambda request: 1.0), lambda: next(turns, False))
    assert found.layout is None and found.tried < 2**3


@native
@pytest.mark.slow
def test_a_layout_that_is_taken_is_compiled_and_fits_its_sequence_alone(
    save_tiny_cnn: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = save_tiny_cnn(tmp_path / "cnn.onnx")
    for name, passes in (("one", TVM_DEFAULT), ("other", ("legalize", "fold-constant"))):
        content = {"passes": [*passes, "share", "order"], "exact": True, "catalogue": "1"}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    # whatever this machine says: pixels are faster, kernel by kernel and as a whole
    monkeypatch.setattr(choose_harness, "HarnessFactory", lambda *_: Made(_pixels_are_faster))
    monkeypatch.setattr(tuned, "_whole", lambda *_: LibraryComparison("ms", 2.0, 1.0, True))
    monkeypatch.setattr(tune, "tune_kernels", lambda *_: [])
    found = api.tune(model, HOST, tmp_path / "t.json", sequence=tmp_path / "one.json")
    assert found.layout is not None and found.layout.taken and found.layout.spec
    assert "2 ms as planes, 1 with" in words(tuning_table(found))
    plain = api.compile_model(model, HOST, out=tmp_path / "plain", sequence=tmp_path / "one.json")
    for name in ("first", "again"):
        report = api.compile_model(
            model, HOST, out=tmp_path / name, sequence=tmp_path / "one.json", tuning=tmp_path / "t.json"
        )
        assert report.best.planned_ram <= plain.best.planned_ram and report.measured.max_rel_error <= 1e-4
    archives = [(tmp_path / name / "libcnn.a").read_bytes() for name in ("plain", "first", "again")]
    assert archives[0] != archives[1] == archives[2]
    with pytest.raises(SequenceError, match="another program"):
        api.compile_model(
            model, HOST, out=tmp_path / "no", sequence=tmp_path / "other.json", tuning=tmp_path / "t.json"
        )


def _pixels_are_faster(request: ScheduleRequest) -> float:
    """Return a cost that falls with each parameter in channels last."""
    shapes = [[int(extent) for extent in param.ty.shape] for param in request.kernel.params]
    return 10.0 - sum(1 for shape in shapes if len(shape) == 4 and shape[1] == shape[2])
