"""Test the objective of a search: the fastest within a budget, the least ram, the least flash; estimates of flash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passfit import api
from passfit.memory.footprint import Budget
from passfit.passes.sequence.sequence import read_sequence
from passfit.targets import get_target

from .test_splitting import stack

pytestmark = pytest.mark.slow


def searched(folder: Path, budget: Budget | None, objective: str | None = None) -> tuple[dict, api.FootprintReport]:
    search = api.SearchSettings(workers=0, objective=objective, max_slowdown=None)
    folder.mkdir()
    model = stack(folder / "stack.onnx")
    report = api.optimize(model, get_target("x86-64"), budget, out=folder / "out", name="stack", search=search)
    return json.loads((folder / "out" / "search.json").read_text()), report


def test_a_loose_budget_takes_the_fastest_and_a_tight_one_the_least_ram(tmp_path):
    least, report = searched(tmp_path / "least", None)
    assert least["objective"] == "ram" and "tradeoff" not in least
    tight, within = searched(tmp_path / "tight", Budget(ram=report.best.ram + get_target("x86-64").stack_reserve))
    assert tight["objective"] == "fastest-within-budget" and tight["tradeoff"]["within"]
    assert within.best.ram == report.best.ram and within.fits
    loose, larger = searched(tmp_path / "loose", Budget(ram=64 << 20))
    points = loose["tradeoff"]["points"]
    chosen = points[loose["tradeoff"]["chosen"]]
    assert read_sequence(tmp_path / "loose" / "out" / "sequence.json").specs == tuple(chosen["passes"])
    assert chosen["ram"] == larger.best.ram > report.best.ram and not loose["closed"]
    assert chosen["cycles"] <= 1.02 * min(point["cycles"] for point in points)
    over, none = searched(tmp_path / "over", Budget(ram=1))
    assert not over["tradeoff"]["within"] and none.best.ram == report.best.ram and not none.fits


def test_the_same_search_writes_the_same_bytes(tmp_path):
    searched(tmp_path / "one", Budget(ram=1 << 20))
    searched(tmp_path / "two", Budget(ram=1 << 20))
    for name in ("sequence.json", "search.json"):
        assert (tmp_path / "one" / "out" / name).read_bytes() == (tmp_path / "two" / "out" / name).read_bytes()


@pytest.mark.parametrize("target", ["x86-64", "rpi4"])
def test_flash_is_estimated_within_a_tenth_of_what_is_built(tmp_path, target):
    model = stack(tmp_path / "stack.onnx")
    report = api.compile_model(
        model, get_target(target), out=tmp_path / "out", search=api.SearchSettings(workers=0, objective="flash")
    )
    found = json.loads((tmp_path / "out" / "search.json").read_text())["tradeoff"]
    chosen = found["points"][found["chosen"]]
    assert chosen["flash"] == pytest.approx(report.best.flash, rel=0.1)
    assert report.best.flash <= chosen["most_flash"]
    assert chosen["flash"] - report.best.weights == pytest.approx(report.best.code, rel=0.1)
    assert all(chosen["flash"] <= 1.01 * point["flash"] for point in found["points"] if point["ram"] <= found["ram"])
