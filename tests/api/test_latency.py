"""Test the least ram within a latency limit: chosen among candidates built, and timed or counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import passfit.verify.measure.side_by_side as measuring
from passfit import api
from passfit.params.latency_limit import LatencyLimit
from passfit.passes.sequence.sequence import read_sequence
from passfit.targets import get_target, how_to_run

from .test_splitting import stack

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time each candidate for a moment: any times do, one is chosen by them."""
    monkeypatch.setattr(measuring, "_ROUNDS", 1)
    monkeypatch.setattr(measuring, "_SECONDS", 0.02)


def found(tmp_path: Path, limit: LatencyLimit, target: str = "x86-64") -> tuple[dict, api.FootprintReport]:
    if how_to_run(get_target(target)).command is None:
        pytest.skip(how_to_run(get_target(target)).how)
    search = api.SearchSettings(max_latency=limit, evaluations=4, workers=0)
    report = api.optimize(stack(tmp_path / "stack.onnx"), get_target(target), out=tmp_path / "out", search=search)
    front = json.loads((tmp_path / "out" / "front.json").read_text())
    chosen = front["points"][front["chosen"]]
    assert read_sequence(tmp_path / "out" / "sequence.json").specs == tuple(chosen["passes"])
    assert report.best.ram == chosen["ram"]
    return front, report


def test_with_all_the_time_there_is_the_least_ram_is_taken(tmp_path):
    front, report = found(tmp_path, LatencyLimit(milliseconds=1e9))
    assert front["unit"] == "ms" and front["within"] and front["chosen"] == 0
    assert report.best.ram == min(point["ram"] for point in front["points"])
    assert any("split" in spec for spec in front["points"][0]["passes"])


def test_where_nothing_is_fast_enough_the_fastest_is_taken_and_it_is_said(tmp_path):
    front, _ = found(tmp_path, LatencyLimit(milliseconds=1e-9))
    fastest = min(point["latency"] for point in front["points"])
    assert not front["within"] and front["points"][front["chosen"]]["latency"] == fastest


def test_for_another_machine_instructions_are_counted(tmp_path):
    front, _ = found(tmp_path, LatencyLimit(ratio=1.0), "rpi4")
    whole = next(point for point in front["points"] if point["lever"] == "tvm-default")
    assert front["unit"] == "instructions" and front["most"] == whole["latency"] > 10_000
    assert front["points"][front["chosen"]]["latency"] <= front["most"]
    assert all(point["latency"] == int(point["latency"]) for point in front["points"])


def test_what_can_be_neither_timed_nor_counted_is_judged_by_its_arithmetic(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "instructions", lambda *_: None)
    front, _ = found(tmp_path, LatencyLimit(ratio=1.0), "rpi4")
    assert front["unit"] == "arithmetic"
    assert all(point["latency"] == 1 + point["extra_compute"] for point in front["points"])
    assert front["points"][front["chosen"]]["extra_compute"] == 0.0
