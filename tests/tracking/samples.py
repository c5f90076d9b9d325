"""A repo with results in `out/`, and a library written by hand that has the functions of a compiled one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from passfit.memory.footprint import Baseline, BesideFloats, Footprint, FootprintReport, Measured, Start
from passfit.params.params import Params, declared, load_params
from passfit.tracking import TrackResult, track

from ..shared_libraries import shared_library

PARAMS = """
models: {a: {source: a.onnx}, b: {source: b.onnx}}
targets: {x86-64: {budget: {ram: 1000}}, rpi4: {budget: {ram: 1000}}}
track: {experiment: tests}
"""
BEST = Footprint(
    ram=640, flash=2048, arena=600, workspace=40, weights=2000, code=48, bound=590, floor=300, proved=False,
    kernels=3, sum=4000,
)  # fmt: skip

ARCHIVE = b"!<arch>\n"
#: doubles x (float32, 1 x 3) into y, counts the calls in n; fails when the first element is negative
LIBRARY = """
#include <stdint.h>
static float x[3], y[3];
static int64_t n[1];
static const char *error = "";
void *two_input(int i) { return i == 0 ? x : 0; }
const void *two_output(int i) { return i == 0 ? (void *)y : (void *)n; }
const char *two_error(void) { return error; }
int32_t two_bind(void *arena) { return arena ? 0 : 2; }
int32_t two_run(void) {
  if (x[0] < 0) { error = "negative"; return 7; }
  for (int i = 0; i < 3; i++) y[i] = 2 * x[i];
  n[0]++;
  return 0;
}
"""
IO = {
    "name": "two",
    "inputs": [{"name": "x", "shape": [1, 3], "dtype": "float32"}],
    "outputs": [
        {"name": "y", "shape": [1, 3], "dtype": "float32"},
        {"name": "n", "shape": [1], "dtype": "int64"},
    ],
}


def build_library(path: Path, text: str = LIBRARY) -> bytes:
    """The hand-written library for this machine."""
    return shared_library(text, path).read_bytes()


class Repo:
    """A folder with params.yaml and `out/`."""

    def __init__(self, path: Path):
        self.path = path
        (path / "params.yaml").write_text(PARAMS, encoding="utf-8")

    @property
    def params(self) -> Params:
        return load_params(self.path / "params.yaml")

    def write(self, place: str, content: object) -> Path:
        path = self.path / "out" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def result(
        self,
        model: str = "a",
        target: str = "rpi4",
        ram: int = 640,
        quantised: BesideFloats | None = None,
        latency: float = 1.5,
        **more: object,
    ) -> None:
        """What the stages leave for one model on one target; `more` is measured, too."""
        measured = Measured(True, "native", 700, latency, 1e-6, 2e-6, **more)
        best = replace(BEST, ram=ram)
        baseline = Baseline.of(replace(BEST, ram=2 * ram))
        report = FootprintReport(
            model, target, Start(9000, 5), best, baseline, measured, quantised=quantised
        )  # the budget is params.yaml's
        folder = f"compile/{model}/{target}"
        self.write(f"{folder}/footprint.json", report.to_json())
        files = {"libtwo.a": hashlib.sha256(ARCHIVE).hexdigest()}
        self.write(f"{folder}/manifest.json", {"target": target, "io": IO, "files": files})
        (self.path / "out" / folder / "libtwo.a").write_bytes(ARCHIVE)
        (self.path / "out" / folder / ".gitignore").write_text("/libtwo.a\n")
        self.write(f"optimize/{model}/{target}/sequence.json", {"passes": ["fold"], "exact": True, "catalogue": "1"})
        self.write(f"optimize/{model}/{target}/trajectory.json", [{"evaluation": i, "ram": 900 - i} for i in range(5)])
        self.write(f"profile/{model}/effects.json", {"target": target, "passes": [], "pairs": []})

    def track(self, refused: Mapping[tuple[str, str], str] | None = None) -> TrackResult:
        """Track and register all results; the gate refuses those of `refused`, and none without it."""
        params = self.params
        return track(self.path, params, dict.fromkeys(declared(params), "") | dict(refused or {}))

    def library(self, content: bytes, model: str = "a", target: str = "x86-64") -> None:
        """The shared library that only the host's target has."""
        (self.path / "out" / "compile" / model / target / "libtwo.so").write_bytes(content)
