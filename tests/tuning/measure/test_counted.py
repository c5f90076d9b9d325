"""Test the instruction counts of kernels under the real emulator: deterministic, and never for wrong results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tvm")

from tvm import relax

import passfit.verify.measure.side_by_side as room
from passfit import api
from passfit.kernels.schedule.choices import schedule_choices
from passfit.passes.sequence.sequence import TVM_DEFAULT
from passfit.report.tuning_table import tuning_table
from passfit.targets import Target, get_target, how_to_run
from passfit.tuning.choose_layout import choose_layout
from passfit.tuning.database import read_tuning
from passfit.tuning.measure.choose_harness import HarnessFactory
from passfit.tuning.measure.counted import CountingHarness, EmulatedMemory, Programs
from passfit.tuning.measure.harness import GUARD, UNTOUCHED

from ...kernels.programs import lowered, weight
from ...report.rendered import words
from ..helpers import requests_of
from ..test_replay import SPLIT, residual

pytestmark = [pytest.mark.tvm, pytest.mark.slow]


def emulated(name: str) -> Target:
    target = get_target(name)
    runner = how_to_run(target)
    if runner.native or runner.command is None:
        pytest.skip(f"{name} is not emulated here ({runner.how})")
    return target


def requests_for(program, target: Target, passes: tuple[str, ...] = ("share", "order")):
    return requests_of(replace(program, machine=target.machine), passes)


@pytest.mark.parametrize("name", ["rpi4", "beaglebone", "visionfive2", "bpi-f3"])
def test_every_way_is_counted_and_computes_the_same(name: str):
    target = emulated(name)
    request = requests_for(residual(), target)[0]
    stand = CountingHarness(request, Programs(target), 0)
    found = (request.scheduled(spec) for spec in schedule_choices(request.kernel, request.repackable, request.machine))
    ways = [way for way in found if way is not None and request.allows(way)][::6]
    stand.build(ways)
    assert len(ways) > 1 and all(stand.agrees(way) for way in ways)
    counts = [stand.cost(way) for way in ways]
    again = CountingHarness(request, Programs(target), 0)
    again.build(ways)
    assert len(set(counts)) > 1 and counts == [again.cost(way) for way in ways]
    # by itself a kernel may be a few instructions of address arithmetic more or less
    assert counts[0] == pytest.approx(CountingHarness(request, Programs(target), 0).cost(ways[0]), abs=8)
    assert stand.cost(request.rules, best=1.0) == float("inf")


def test_a_window_is_called_with_its_row():
    target = emulated("rpi4")
    windows = [each for each in requests_for(residual(), target, SPLIT) if each.fixed_shapes]
    assert windows
    for request in windows:
        stand = CountingHarness(request, Programs(target), 0)
        assert stand.agrees(request.rules) and stand.cost(request.rules) > 0


def test_what_computes_something_else_is_noticed():
    target = emulated("rpi4")

    def program(then):
        return lowered([(1, 8, 9, 9)], lambda x: then(relax.op.nn.conv2d(x, weight(16, 8, 3, 3))))

    (request,), (other,) = (requests_for(program(then), target) for then in (relax.op.nn.relu, relax.op.negative))
    stand = CountingHarness(request, Programs(target), 0)
    assert stand.agrees(request.rules) and not stand.agrees(other.rules)


def test_only_results_may_be_written():
    operand, result = np.arange(5, dtype=np.float32), np.zeros((2, 3), np.float32)
    memory = EmulatedMemory([operand, 7, result], 1)
    before = memory.block.tobytes()
    (start,) = (n for n in range(len(before)) if before[n : n + 24 + GUARD] == bytes(24) + bytes([UNTOUCHED]) * GUARD)
    for place in range(0, len(before), 3):
        after = bytearray(before)
        after[place] ^= 1
        assert (memory.results(bytes(after)) is not None) == (start <= place < start + 24)


@pytest.fixture(scope="module")
def cnn(save_tiny_cnn: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_cnn(tmp_path_factory.mktemp("model") / "cnn.onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    passes = {"passes": [*TVM_DEFAULT, "share", "order"], "exact": True, "catalogue": "1"}
    (folder / "sequence.json").write_text(json.dumps(passes))
    return folder


def tuned(cnn: Path, folder: Path) -> api.Database:
    """Tune with more time than all candidates take."""
    settings = api.TuneSettings(600.0)
    return api.tune(cnn, emulated("rpi4"), folder / "t.json", sequence=folder / "sequence.json", settings=settings)


def test_layouts_are_counted_too():
    def body(x):
        first = relax.op.nn.relu(relax.op.nn.conv2d(x, weight(16, 4, 1, 1)))
        return relax.op.nn.conv2d(relax.op.nn.max_pool2d(first, (3, 3)), weight(8, 16, 1, 1))

    found = choose_layout(lowered([(1, 4, 9, 9)], body), HarnessFactory(emulated("rpi4"), 0), lambda: True)
    assert found.proved and found.tried == 5 and 0 < found.after <= found.before < 10**6


def test_tuning_from_one_end_to_the_other(cnn: Path, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("passfit.tuning.tune_model._FOR_LAYOUT", 0)
    found = tuned(cnn, folder)
    assert not found.layout.tried
    assert (found.unit, found.how) == ("instructions", "qemu-aarch64, executed instructions")
    assert found.choices and found.whole.taken and found.whole.after < found.whole.before
    assert "instructions" in words(tuning_table(found))
    report = api.compile_model(
        cnn, get_target("rpi4"), out=folder / "out", sequence=folder / "sequence.json", tuning=folder / "t.json"
    )
    assert report.measured.instructions == found.whole.after and report.measured.max_rel_error <= 1e-4

    # what is no better as a whole is not taken
    monkeypatch.setattr("passfit.tuning.tune_kernels.tune_kernels", lambda *_: list(found.kernels))
    monkeypatch.setattr(room, "instructions", lambda *_: 1000)
    found = tuned(cnn, folder)
    assert not found.whole.taken and not found.choices and "no better" in words(tuning_table(found))
    assert not read_tuning(folder / "t.json", get_target("rpi4"))
