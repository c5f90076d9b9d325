"""Test the budget: filled in after compiling, and no error of a stage if exceeded."""

from __future__ import annotations

import json

import pytest

from passfit.artifacts.places import compile_dir, kept_footprint
from passfit.errors import ConfigError
from passfit.memory.footprint import Baseline, Footprint, FootprintReport, Measured, Start
from passfit.params.params import load_params
from passfit.stages.footprint import footprint

BEST = Footprint(
    ram=640, flash=2048, arena=600, workspace=40, weights=2000, code=48, bound=590, floor=300, proved=False,
    kernels=3, sum=4000,
)  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_repo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = compile_dir("ocr", "rpi4") / "footprint.json"
    place.parent.mkdir(parents=True)
    ran = Measured(True, "native", 4096, 1.0, 0.0, 0.0, stack=40)
    report = FootprintReport("ocr", "rpi4", Start(9, 1), BEST, Baseline.of(BEST), ran)
    place.write_text(json.dumps(report.to_json()))


def params(tmp_path, target: str):
    (tmp_path / "params.yaml").write_text(f"models: {{ocr: {{source: o.onnx}}}}\ntargets: {{rpi4: {target}}}\n")
    return load_params(tmp_path / "params.yaml")


@pytest.mark.parametrize(
    ("target", "budget", "fits", "line"),
    [
        ("", {"ram": None, "flash": None}, True, "ocr @ rpi4: fits: ram 640 B of the device's"),
        (
            "{budget: {ram: 640}}",
            {"ram": 640, "flash": None},
            True,
            "ocr @ rpi4: fits: ram 640 B of the budget's 640 B",
        ),
        (
            "{budget: {ram: 639}}",
            {"ram": 639, "flash": None},
            False,
            "does NOT fit: ram 640 B of the budget's 639 B (over by 1 B), flash",
        ),
        (
            "{budget: {flash: 2047}}",
            {"ram": None, "flash": 2047},
            False,
            "flash 2,048 B of the budget's 2,047 B (over by 1 B)",
        ),
        ("{budgets: {ocr: {flash: 1}}}", {"ram": None, "flash": 1}, False, "flash 2.0 KiB of the budget's 1 B"),
    ],
)
def test_it_keeps_the_footprint_with_its_budget(tmp_path, target, budget, fits, line):
    assert line in footprint(params(tmp_path, target), "ocr", "rpi4")
    kept = json.loads(kept_footprint("ocr", "rpi4").read_text())
    assert (kept["budget"], kept["fits"]) == (budget, fits)
    compiled = json.loads((compile_dir("ocr", "rpi4") / "footprint.json").read_text())
    assert list(kept) == list(compiled)
    assert kept["measured"] == {"ran": True, "how": "native", "stack": 40}
    apart = ("budget", "fits", "measured")
    assert {key: value for key, value in kept.items() if key not in apart} == {
        key: value for key, value in compiled.items() if key not in apart
    }


def test_another_run_keeps_the_same_bytes(tmp_path):
    place = compile_dir("ocr", "rpi4") / "footprint.json"
    footprint(params(tmp_path, ""), "ocr", "rpi4")
    first, again = kept_footprint("ocr", "rpi4").read_bytes(), json.loads(place.read_text())
    again["measured"] |= {
        "latency_ms": 9.0, "max_abs_error": 1e-7, "max_rel_error": 1e-6, "throughput": 7.0, "compile_seconds": 3.0, "ram": 4096,
        "page": 4096, "energy": {"how": "RAPL", "mj_per_run": 1.0}, "error": {"reference": "double"}, "cycles": 5,
    }  # fmt: skip
    place.write_text(json.dumps(again))
    footprint(params(tmp_path, ""), "ocr", "rpi4")
    assert kept_footprint("ocr", "rpi4").read_bytes() == first


def test_the_memory_of_an_image_is_kept(tmp_path):
    place = compile_dir("ocr", "rpi4") / "footprint.json"
    image = json.loads(place.read_text())
    image["measured"] |= {"ram": 600, "flash": 2048, "instructions": 77}
    place.write_text(json.dumps(image))
    footprint(params(tmp_path, ""), "ocr", "rpi4")
    kept = json.loads(kept_footprint("ocr", "rpi4").read_text())["measured"]
    assert (kept["ram"], kept["flash"], kept["instructions"]) == (600, 2048, 77)


def test_without_a_result_it_says_how_to_make_one(tmp_path):
    (compile_dir("ocr", "rpi4") / "footprint.json").unlink()
    with pytest.raises(ConfigError, match="dvc repro"):
        footprint(params(tmp_path, ""), "ocr", "rpi4")
