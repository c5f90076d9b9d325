"""Kill commands and stages at random points: no process is left, and the next run writes what an undisturbed one does."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ..profiles import examples
from ..results import MEASURED
from .processes import Marked, files

Model = Callable[..., Path]
_HOST = ("net.onnx", "--target", "x86-64", "--strategy", "greedy")
_STAGE = ("net", "x86-64")
COMMANDS = {
    "optimize": ("passfit.cli", "optimize", *_HOST, "--out", "out"),
    "compile": ("passfit.cli", "compile", *_HOST, "--out", "out"),
    "fit": ("passfit.cli", "fit", "net.onnx", "--family", "stm32", "--json"),
    "profile": ("passfit.cli", "profile", "net.onnx", "--out", "out/effects.json"),
    "tune": ("passfit.cli", "tune", "net.onnx", "--target", "x86-64", "--seconds", "3", "--out", "out/tuning.json"),
    "image": ("passfit.cli", "image", "net.onnx", "--target", "mps3-an547", "--strategy", "greedy", "--out", "out"),
    "quantize": ("passfit.cli", "quantize", "net.onnx", "--data", "samples.npz", "--out", "out/net.onnx"),
    "stage toolchain": ("passfit.stages.toolchain",),
    "stage import": ("passfit.stages.import_model", "net", "net.onnx"),
    "stage optimize": ("passfit.stages.optimize", *_STAGE),
    "stage compile": ("passfit.stages.compile", *_STAGE),
    "stage footprint": ("passfit.stages.footprint", *_STAGE),
}
#: before a stage, those that it reads from
_ORDER = ("toolchain", "import", "optimize", "compile", "footprint")
#: seconds after which Python has started: an earlier Ctrl-C is its own affair
_STARTED = 0.2
#: tested by day; the others by night
DAILY = ("compile", "fit", "stage optimize")
_PARAMS = "models: {net: {source: net.onnx}}\ntargets: {x86-64: {}}\noptimize: {strategy: greedy}\n"


def _prepare(folder: Path, name: str, model: bytes) -> Path:
    """Write the inputs of a command, or of a stage with those before it."""
    (folder / "out").mkdir(parents=True)
    (folder / "net.onnx").write_bytes(model)
    np.savez(folder / "samples.npz", image=np.linspace(0, 1, 8 * 768, dtype=np.float32).reshape(8, 3, 16, 16))
    kind, _, stage = name.partition(" ")
    if kind == "stage":
        (folder / "params.yaml").write_text(_PARAMS)
        (folder / "dvc.yaml").write_text("stages: {}\n")
        for before in _ORDER[: _ORDER.index(stage)]:
            code, _, said = Marked(COMMANDS[f"stage {before}"], folder).end()
            assert code == 0, said
    return folder


def _results(folder: Path) -> dict[str, bytes]:
    """Return the files that are the same each time."""
    timed = {*MEASURED, "manifest.json", "tuning.json", "trace.json"}
    return {name: content for name, content in files(folder).items() if Path(name).name not in timed}


@pytest.mark.fault(
    "SIGKILL or Ctrl-C", "at random points of every command and stage",
    "no process is left; the next run sweeps what was left and writes the same bytes",
)  # fmt: skip
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DAILY else pytest.mark.nightly) for name in COMMANDS]
)
def test_a_killed_command_leaves_no_process_and_runs_again(save_tiny_cnn: Model, tmp_path: Path, name: str) -> None:
    model = save_tiny_cnn(tmp_path / "tiny.onnx").read_bytes()
    whole = _prepare(tmp_path / "whole", name, model)
    started = time.monotonic()
    code, out, said = Marked(COMMANDS[name], whole).end()
    seconds = time.monotonic() - started
    assert code in (0, 1), said
    drawn = random.Random(name)
    folder = _prepare(tmp_path / "killed", name, model)
    before = set(files(folder))
    for number in [signal.SIGKILL, signal.SIGINT] * examples(1):
        running = Marked(COMMANDS[name], folder)
        time.sleep(max(_STARTED, seconds * drawn.random()))
        os.kill(running.process.pid, number)
        ended, _, said = running.end()
        assert running.survivors() == []
        assert "Traceback" not in said
        if ended == 128 + number:  # else it was over already
            left = [each for each in set(files(folder)) - before if ".passfit-" not in each]
            assert name.startswith("stage") or left == []
        if ended in (0, 1):
            assert _results(folder) == _results(whole)
    assert Marked(COMMANDS[name], folder).end()[:2] == (code, out) or name != "fit"
    assert _results(folder) == _results(whole)
