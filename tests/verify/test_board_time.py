"""Estimate the time of a library on boards from what their emulator runs."""

import json

import pytest

from passfit import api
from passfit.memory.measured import EstimatedTime
from passfit.targets import get_target, how_to_run
from passfit.verify.measure import executed_blocks
from passfit.verify.measure.executed_blocks import read_blocks

from ..models import model_of, save

pytestmark = [pytest.mark.slow, pytest.mark.tvm]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import numpy as np
    from onnx import helper

    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4), helper.make_node("Sigmoid", ["a"], ["y"])]
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    made = model_of(nodes, {"x": (1, 3, 12, 12)}, {"y": (1, 4, 12, 12)}, {"w": weights})
    return save(made, tmp_path_factory.mktemp("model"), "small.onnx")


def compiled(model, name, out):
    search = api.SearchSettings("tvm-default", workers=0)
    measured = api.compile_model(model, get_target(name), out=out, search=search).measured
    if not measured.ran:
        pytest.skip(how_to_run(get_target(name)).how)
    return measured


@pytest.mark.parametrize("name", ["stm32f446", "stm32h743", "rp2350", "esp32-c3", "mps3-an547"])
def test_the_time_is_that_of_the_counted_instructions(tmp_path, model, name):
    measured, target = compiled(model, name, tmp_path), get_target(name)
    found = json.loads((tmp_path / "cycles.json").read_text())
    counted = sum(each["instructions"] for each in found["functions"])
    assert counted == pytest.approx(measured.instructions, rel=0.25)
    totals = [sum(each["cycles"][bound] for each in found["functions"]) for bound in range(3)]
    assert measured.estimated.cycles == pytest.approx(totals, abs=len(found["functions"]))
    assert measured.estimated.mhz == found["mhz"] == target.mhz
    # no core of the catalogue issues more than two instructions a cycle, nor takes ten for the mean of a kernel's
    assert counted / 2 <= totals[0] <= totals[1] <= totals[2] <= 10 * counted


def test_the_same_library_takes_the_same_time(tmp_path, model):
    estimates = [compiled(model, "stm32f446", tmp_path / each).estimated for each in "ab"]
    assert estimates[0] == estimates[1]
    assert (tmp_path / "a" / "cycles.json").read_bytes() == (tmp_path / "b" / "cycles.json").read_bytes()


def test_without_a_plugin_a_library_runs_as_before(tmp_path, model, monkeypatch):
    monkeypatch.setattr(executed_blocks, "_plugin_version", lambda emulator: None)
    assert compiled(model, "stm32f446", tmp_path).estimated is None


def test_an_emulator_that_takes_no_plugin_runs_again_without(tmp_path, model, monkeypatch):
    monkeypatch.setattr(executed_blocks, "_build", lambda version, host: b"no library")
    monkeypatch.setattr(executed_blocks, "kept_bytes", lambda kind, key, make: make())
    measured = compiled(model, "stm32f446", tmp_path)
    assert measured.ran and measured.estimated is None and not (tmp_path / "cycles.json").exists()


def test_blocks_are_read_as_they_are_written(tmp_path):
    (tmp_path / "blocks.txt").write_text("10 14 3 1\n\tnop\n\tb #0x10\n20 22 1 0\n\tnop\n")
    first, second = read_blocks(tmp_path)
    assert (first.first, first.end, first.runs, first.jumps, first.text) == (0x10, 0x14, 3, 1, ("nop", "b #0x10"))
    assert second.text == ("nop",) and read_blocks(tmp_path / "elsewhere") == []


def test_an_estimate_tells_its_range():
    assert EstimatedTime((90_000, 120_000, 1_800_000), 180).summary == (
        "about 0.667 ms at 180 MHz (0.5 ms to 10 ms, estimated)"
    )
