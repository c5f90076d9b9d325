"""Test `passfit explain`, with and without the results of the search."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from passfit.data.accuracy import report_fields
from passfit.memory import ALIGNMENT, SavedPlan, plan_arena, write_plan, write_report
from passfit.memory.files.plan_file import CodePart
from passfit.memory.footprint import Baseline, Footprint, FootprintReport, Measured, Start
from passfit.memory.measured import Energy
from passfit.program import Weight

from ..memory.loops import with_loop
from ..report.results import accuracy
from ..strategies import chain
from .conftest import Done

LEVERS = [{"lever": "repeat", "arena": 1280, "extra_compute": 0.125, "passes": ["order"]}]


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """Make a folder like the stage `compile`: the search belongs to another stage."""
    folder = tmp_path / "out" / "compile" / "m" / "rpi4"
    folder.mkdir(parents=True)
    program = chain(640, 640)
    write_plan(SavedPlan(program, plan_arena(program), ALIGNMENT), folder / "plan.json")
    return folder


def test_without_a_search_there_are_no_levers(passfit: Callable[..., Done], planned: Path):
    done = passfit("explain", planned)
    assert done.code == 0 and "nothing gets below" in done.out and "12.5 %" not in done.out


@pytest.mark.parametrize("place", ["out/compile/m/rpi4", "out/optimize/m/rpi4"])
def test_the_levers_are_those_beside_the_plan_or_of_the_stage_before(
    passfit: Callable[..., Done], planned: Path, tmp_path: Path, place: str
):
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    (tmp_path / place / "search.json").write_text(json.dumps({"levers": LEVERS, "next": "nothing may be run again"}))
    said = passfit("explain", planned).out
    assert "12.5 %" in said and "nothing may be run again" in said


def test_the_measurements_beside_the_plan_are_shown(passfit: Callable[..., Done], planned: Path):
    size = Footprint(1, 2, 3, 4, 5, 6, 7, 8, True, 9, 10)
    measured = Measured(
        True,
        "native",
        700,
        1.5,
        1e-6,
        2e-6,
        throughput=640.0,
        energy=Energy("absent: no counters"),
        compile_seconds=7.0,
    )
    write_report(
        FootprintReport("m", "x86-64", Start(1, 2), size, Baseline.of(size), measured), planned / "footprint.json"
    )
    said = " ".join(passfit("explain", planned).out.split())
    assert all(each in said for each in ("1.50 ms", "640 runs/s", "energy absent: no counters", "compiled in 7.0 s"))
    with_counters = replace(measured, energy=Energy("RAPL: package-0", 2.5))
    report = FootprintReport("m", "x86-64", Start(1, 2), size, Baseline.of(size), with_counters)
    write_report(report, planned / "footprint.json")
    assert "2.5 mJ a run" in " ".join(passfit("explain", planned).out.split())
    place = planned.parents[2] / "evaluate" / "m" / "rpi4" / "accuracy.json"
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(report_fields(accuracy(0.95, "m", "x86-64"))))
    said = " ".join(passfit("explain", planned).out.split())
    assert (
        "accuracy 0.95" in said and "fewest right, by class: dog: 90% of 500" in said and "7.png: cat, not dog" in said
    )
    assert json.loads(passfit("explain", planned, "--json").out)["accuracy"]["metric"] == "accuracy"


def test_json_holds_the_parts_of_ram_and_flash(passfit: Callable[..., Done], planned: Path):
    program = replace(chain(640, 640), weights=(Weight("conv.weight", 96, "0", ("conv.weight",)),))
    saved = SavedPlan(program, plan_arena(program), ALIGNMENT, (CodePart("k0", 10, ("node0",)),))
    write_plan(saved, planned / "plan.json")
    found = json.loads(passfit("explain", planned, "--json").out)
    assert found["arena"]["arena"] == plan_arena(program).arena and found["bodies"] == []
    assert found["flash"]["weights"][0]["initializers"] == ["conv.weight"] and found["flash"]["alignment"] == 32
    assert found["flash"]["code"] == [{"name": "k0", "nbytes": 10, "nodes": ["node0"]}]
    assert "conv.weight" in passfit("explain", planned).out


def test_the_values_of_a_loops_body_are_shown(passfit: Callable[..., Done], planned: Path):
    write_plan(with_loop(), planned / "plan.json")
    said = " ".join(passfit("explain", planned, "--wide").out.split())
    assert "Loop k00 loop, 40 iterations: 1.1 KiB of values, 1.1 KiB alive in stage 1 wide" in said
    assert "Loop inside k00 loop, 5 iterations: 64 B of values" in said
    assert "wide uint8 1.0 KiB 0 1–2" in said and "h uint8 64 B 1024 0–2" in said


def test_a_malformed_search_is_refused(refused: Callable[..., str], planned: Path):
    (planned / "search.json").write_text('{"levers": 3}')
    assert "search.json" in refused("explain", planned)
