"""Test the times of kernels for the report: off by default, and what could not be timed says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from passfit import api
from passfit.artifacts.places import kernels_file
from passfit.params.params import Params, load_params
from passfit.report.html.sections import nodes_section
from passfit.stages.kernels import kernels
from passfit.targets import Runner

from ..report.results import result


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def write(text: str) -> Params:
        (tmp_path / "params.yaml").write_text(f"models: {{ocr: {{source: o.onnx}}}}\ntargets: {{x86-64: }}\n{text}\n")
        return load_params(tmp_path / "params.yaml")

    monkeypatch.chdir(tmp_path)
    return write


def said(found: dict) -> str:
    return nodes_section(result().__class__(result().footprint, kernels=found)).parts[0].words


def test_by_default_nothing_is_built_and_the_file_says_why(params):
    kernels(params(""), "ocr", "x86-64")  # there is no model to read
    found = json.loads(kernels_file("ocr", "x86-64").read_text())
    assert found["kernels"] == [] and "profile.kernels is false" in said(found)


def test_a_target_that_does_not_run_here_natively_is_left_out(params, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("passfit.stages.kernels.how_to_run", lambda _: Runner(["qemu"], "under qemu"))
    kernels(params("profile: {kernels: true}"), "ocr", "x86-64")
    found = json.loads(kernels_file("ocr", "x86-64").read_text())
    assert "does not run x86-64 natively: under qemu" in said(found)


def test_the_library_of_the_stage_compile_is_timed(params, monkeypatch: pytest.MonkeyPatch):
    asked = {}

    def profile(model: Path, target: object, out: Path, **options: object) -> dict:
        assert out.parent.is_dir()
        asked.update(options, model=model, out=out)
        return {"kernels": [{}], "run_ns": 1500}

    monkeypatch.setattr("passfit.stages.kernels.how_to_run", lambda _: Runner([], "native"))
    monkeypatch.setattr(api, "profile_kernels", profile)
    tuned = params("profile: {kernels: true}\ntune: {seconds: 9}")
    assert kernels(tuned, "ocr", "x86-64") == "ocr @ x86-64: 1 kernels in 0.0015 ms"
    assert (asked["sequence"], asked["tuning"]) == (
        Path("out/optimize/ocr/x86-64/sequence.json"), Path("out/tune/ocr/x86-64/tuning.json"),
    )  # fmt: skip
    assert asked["out"] == kernels_file("ocr", "x86-64") and asked["name"] == "ocr"
    kernels(params("profile: {kernels: true}"), "ocr", "x86-64")
    assert asked["tuning"] is None, "one on disk is of a stage that is gone"
