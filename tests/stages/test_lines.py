"""Test the line of each stage, with unknown values too."""

from __future__ import annotations

from dataclasses import replace

from passfit.memory.footprint import Baseline, Footprint, FootprintReport, Measured, Start
from passfit.stages._lines import compile_line, optimize_line, profile_line

BEST = Footprint(
    ram=1 << 18, flash=1 << 20, arena=600, workspace=40, weights=2000, code=48, bound=590, floor=300, proved=False,
    kernels=3, sum=4000,
)  # fmt: skip
REPORT = FootprintReport(
    "ocr", "rpi4", Start(9, 1), BEST, Baseline.of(replace(BEST, ram=1 << 19)),
    Measured(True, "native", 270000, 1.5, 1e-6, 2e-6),
)  # fmt: skip


def test_a_search_says_ram_ratio_and_states():
    assert optimize_line(REPORT, {"evaluations": 22, "closed": True}) == (
        "ocr @ rpi4: ram 256.0 KiB, 0.50 of tvm-default; 22 states looked at, closed"
    )
    assert not optimize_line(REPORT, {"evaluations": 22, "closed": False}).endswith("closed")
    nothing = replace(REPORT, baseline=replace(BEST, ram=0))
    assert "tvm-default" not in optimize_line(nothing, {"evaluations": 1, "closed": True})


def test_a_library_says_what_was_predicted_measured_and_how_far_off_it_is():
    line = compile_line(REPORT)
    assert "ram 256.0 KiB, 0.50 of tvm-default; measured 263.7 KiB; flash 1.0 MiB; max error 2.0e-06" in line
    not_run = compile_line(replace(REPORT, measured=Measured(False, "not-run: no qemu-aarch64")))
    assert not_run.endswith("flash 1.0 MiB; not-run: no qemu-aarch64") and "measured" not in not_run


def test_a_profile_says_how_many_passes_change_something():
    passes = [
        {"spec": "a", "changed": True, "delta": {"arena": -2048}},
        {"spec": "b", "changed": True, "delta": {"arena": -1}},
        {"spec": "c", "changed": False, "delta": {"arena": 0}},
    ]
    line = "ocr: 2 of 3 passes change something; most by a: -2.0 KiB of arena"
    assert profile_line("ocr", {"passes": passes}) == line
    assert profile_line("ocr", {"passes": passes[2:]}) == "ocr: 0 of 1 passes change something"
