"""Test the replay of a tuning: it applies, costs no ram, and is deterministic; unknown kernels keep the rules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

from passfit import api
from passfit.errors import ConfigError
from passfit.kernels.schedule.candidates import Schedule
from passfit.kernels.schedule.choices import schedule_choices
from passfit.kernels.schedule.tuned import Tuning
from passfit.memory import read_plan, read_report
from passfit.memory.validation.checked_plan import checked_plan
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.targets import get_target, how_to_run
from passfit.tuning.database import Database, TunedKernel, device_of, empty, write_database

from ..kernels.programs import lowered, random_inputs, run, weight
from ..results import reproducible
from .helpers import arranged_with, requests_of

HOST = get_target("x86-64")
pytestmark = pytest.mark.slow
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
PASSES = (*TVM_DEFAULT, "share", "order")


def residual(seed: int = 0):
    """Make two convolutions; the second adds the first one's result, so both may share memory."""

    def body(x):
        first = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(8, 4, 3, 3, seed=seed), padding=1))
        return relax.op.nn.relu(relax.op.add(relax.op.nn.conv2d(x, weight(8, 4, 1, 1, seed=seed + 1)), first))

    return lowered([(1, 4, 6, 6)], body)


SPLIT = ("split-rows{steps=0-1}", "share", "order")


def some_choices(passes: tuple[str, ...]) -> list[dict[str, str]]:
    """Take the n-th choice of each kernel for the n-th tuning."""
    found: dict[str, list[str]] = {}
    for request in requests_of(residual(), passes):
        specs = [*schedule_choices(request.kernel, request.repackable, request.machine, request.fixed_shapes)]
        found[request.fingerprint] = [spec for spec in specs[::5] + specs[-2:] if request.scheduled(spec) is not None]
    longest = max(map(len, found.values()))
    return [{name: specs[n % len(specs)] for name, specs in found.items()} for n in range(longest)]


@pytest.mark.parametrize("passes", [("share", "order"), SPLIT], ids=["whole", "split"])
def test_no_choice_costs_ram_or_changes_a_result(passes: tuple[str, ...]):
    theirs, allowed = arranged_with(residual(), Tuning(), passes)
    plan, inputs = checked_plan(theirs.program, HOST), random_inputs(residual())
    (expected,) = run(theirs, inputs)
    changed = 0
    for chosen in some_choices(passes):
        ours, workspace = arranged_with(residual(), Tuning(chosen), passes)
        assert workspace <= allowed
        assert checked_plan(ours.program, HOST) == plan
        assert [step.in_place for step in ours.program.steps] == [step.in_place for step in theirs.program.steps]
        np.testing.assert_allclose(run(ours, inputs)[0], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
        changed += any(
            one.script() != other.script() for one, other in zip(ours.kernels.values(), theirs.kernels.values())
        )
    assert changed > 1


def test_what_needs_more_workspace_or_shares_less_is_left_to_the_rules():
    first = requests_of(residual())
    large = next(r for r in first if (s := r.scheduled("plain")) is not None and s.workspace > r.most)
    assert Tuning({large.fingerprint: "plain"}).schedule(large) is large.rules
    request = next(r for r in first if r.rules.sharing.in_place)
    stingy = Schedule(request.rules.kernel.with_attr("passfit.scheduled", True), 0)
    assert request.allows(request.rules) and not request.allows(stingy)


def test_a_choice_of_another_kernel_is_an_error():
    request = requests_of(residual())[0]
    with pytest.raises(ConfigError, match=f"{request.fingerprint}.*does not fit"):
        Tuning({request.fingerprint: "lane-sums{lanes=5}"}).schedule(request)


def test_a_fingerprint_is_of_the_structure_alone():
    one, other = (requests_of(residual(seed)) for seed in (0, 7))
    assert [each.fingerprint for each in one] == [each.fingerprint for each in other]
    assert len({each.fingerprint for each in one}) == 2
    named = [each.kernel.with_attr("global_symbol", "other") for each in one]
    for each, kernel in zip(one, named):
        assert replace(each, kernel=kernel).fingerprint == each.fingerprint


def test_a_fingerprint_is_the_same_in_another_process():
    code = (
        "from tests.tuning.test_replay import residual, requests_of\n"
        "print(*(each.fingerprint for each in requests_of(residual())))"
    )
    root = Path(__file__).parents[2]
    for seed in ("1", "2"):
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{Path(api.__file__).parents[1]}:{root}"}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == [each.fingerprint for each in requests_of(residual())]


@pytest.fixture(scope="module")
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_cnn(tmp_path_factory.mktemp("model") / "cnn.onnx")


@pytest.fixture(scope="module")
def sequence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sequence") / "sequence.json"
    path.write_text(json.dumps({"passes": PASSES, "exact": True, "catalogue": "1"}))
    return path


@native
def test_a_slower_choice_is_honoured_and_gives_the_same_bytes_each_time(cnn: Path, sequence: Path, tmp_path: Path):
    census = _census_of(cnn, sequence)
    allowed = [name for name, request in census.items() if request.allows(request.scheduled("fuse"))]
    slow = [TunedKernel(name, ["float32"], 1, 1, 2, "fuse") for name in allowed]
    assert slow
    write_database(Database(HOST.name, device_of(HOST), kernels=tuple(slow)), tmp_path / "t.json")
    write_database(empty(HOST), tmp_path / "none.json")
    for name, tuning in (("plain", None), ("empty", "none.json"), ("one", "t.json"), ("other", "t.json")):
        api.compile_model(
            cnn, HOST, out=tmp_path / name, sequence=sequence, tuning=None if tuning is None else tmp_path / tuning
        )
    plain, nothing, one, other = (reproducible(tmp_path / name) for name in ("plain", "empty", "one", "other"))
    assert plain == nothing
    assert one == other
    assert one["libcnn.a"] != plain["libcnn.a"]
    assert read_plan(tmp_path / "one" / "plan.json").plan == read_plan(tmp_path / "plain" / "plan.json").plan
    assert "tuning" not in json.loads(plain["manifest.json"])
    assert len(json.loads(one["manifest.json"])["tuning"]) == 64
    ours, theirs = (read_report(tmp_path / name / "footprint.json").best for name in ("one", "plain"))
    assert ours.planned_ram <= theirs.planned_ram and ours.arena == theirs.arena


def _census_of(cnn: Path, sequence: Path):
    from passfit.passes.sequence.replay import replay
    from passfit.passes.sequence.sequence import read_sequence
    from passfit.tuning.recorder import ScheduleRecorder

    imported, census = api.load(cnn), ScheduleRecorder()
    replay(read_sequence(sequence), imported.graph, imported.onnx, imported.name, HOST.machine, census)
    return census.requests


@native
def test_tuning_from_one_end_to_the_other(cnn: Path, sequence: Path, tmp_path: Path):
    found = api.tune(cnn, HOST, tmp_path / "t.json", sequence=sequence, settings=api.TuneSettings(3.0, trials=0))
    assert found.how == "native, caches warm" and found.kernels
    report = api.compile_model(cnn, HOST, out=tmp_path / "out", sequence=sequence, tuning=tmp_path / "t.json")
    assert report.measured.ran and report.measured.max_rel_error <= 1e-4
