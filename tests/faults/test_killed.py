"""Kill commands and stages at random points: no process is left, and the next run writes what an undisturbed one does."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import cache
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
    "evaluate": ("passfit.cli", "evaluate", "net.onnx", "--data", "samples.npz", "--result", "built", "--out", "out"),
    "package": ("passfit.cli", "package", "built", "--kind", "cmake", "--out", "out"),
    "report": ("passfit.cli", "report", "built", "--out", "out/page.html"),
    "explain": ("passfit.cli", "explain", "built"),
    "gate": ("passfit.cli", "gate", "--format", "json"),
    "track": ("passfit.cli", "track"),
    "built": ("passfit.cli", "compile", *_HOST, "--out", "built"),
    "stage toolchain": ("passfit.stages.toolchain",),
    "stage quantize": ("passfit.stages.quantize", "small", "net.onnx"),
    "stage import": ("passfit.stages.import_model", "net", "net.onnx"),
    "stage profile": ("passfit.stages.profile", *_STAGE),
    "stage optimize": ("passfit.stages.optimize", *_STAGE),
    "stage tune": ("passfit.stages.tune", *_STAGE),
    "stage compile": ("passfit.stages.compile", *_STAGE),
    "stage kernels": ("passfit.stages.kernels", *_STAGE),
    "stage footprint": ("passfit.stages.footprint", *_STAGE),
    "stage evaluate": ("passfit.stages.evaluate", *_STAGE),
    "stage report": ("passfit.stages.report",),
    "stage track": ("passfit.stages.track",),
}
_SEARCHED = ("stage toolchain", "stage import", "stage optimize")
_MADE = (*_SEARCHED, "stage tune", "stage compile", "stage footprint")
#: the programs whose results another one reads, in their order
_BEFORE = {
    **dict.fromkeys(("evaluate", "package", "report", "explain"), ("built",)),
    **dict.fromkeys(("gate", "track", "stage kernels", "stage evaluate", "stage report", "stage track"), _MADE),
    **{f"stage {name}": _SEARCHED[:2] for name in ("profile", "optimize")},
    "stage import": _SEARCHED[:1], "stage tune": _SEARCHED, "stage compile": _MADE[:4], "stage footprint": _MADE[:5],
}  # fmt: skip
#: those that write nothing but what they say
_SAY = ("fit", "explain", "gate")
#: seconds after which Python has started: an earlier Ctrl-C is its own affair
_STARTED = 0.2
_SIGNALS = (signal.SIGKILL, signal.SIGINT)
#: tested by day; the others, and the other signal, by night
DAILY = {"compile": signal.SIGKILL, "fit": signal.SIGINT, "package": signal.SIGINT, "stage optimize": signal.SIGKILL}
_PARAMS = """
models:
  net: {source: net.onnx, data: {source: samples.npz}}
targets: {x86-64: {}}
optimize: {strategy: greedy}
tune: {seconds: 2}
profile: {kernels: true}
"""
#: that of the stage `quantize` alone: the gate would miss its library
_SMALL = (
    "models: {small: {source: net.onnx, data: {source: samples.npz}, quantize: {form: int8}}}\ntargets: {x86-64: {}}\n"
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, save_tiny_cnn: Model) -> Callable[[tuple[str, ...]], Path]:
    """Return a function that gives a folder in which some programs ran, each made once."""

    @cache
    def prepare(programs: tuple[str, ...]) -> Path:
        folder = tmp_path_factory.mktemp("prepared") / "repo"
        if programs:
            shutil.copytree(prepare(programs[:-1]), folder)
            code, _, said = Marked(COMMANDS[programs[-1]], folder).end()
            assert code == 0, said
            return folder
        (folder / "out").mkdir(parents=True)
        save_tiny_cnn(folder / "net.onnx")
        np.savez(folder / "samples.npz", image=np.linspace(0, 1, 8 * 768, dtype=np.float32).reshape(8, 3, 16, 16))
        (folder / "params.yaml").write_text(_PARAMS)
        (folder / "dvc.yaml").write_text("stages: {}\n")
        return folder

    return prepare


def _results(folder: Path) -> dict[str, bytes]:
    """Return the files that are the same each time."""
    timed = {*MEASURED, "manifest.json", "tuning.json", "trace.json", "kernels.json"}
    found = files(folder).items()
    return {name: content for name, content in found if Path(name).name not in timed and not _is_of_server(name)}


def _is_of_server(name: str) -> bool:
    """Tell whether a file is of MLflow's store, with names and times of its own."""
    return name.startswith(("mlruns", "mlartifacts", "out/mlflow")) or "mlflow.db" in name


@pytest.mark.fault(
    "SIGKILL or Ctrl-C", "at random points of every command and stage",
    "no process is left; the next run sweeps what was left and writes the same bytes",
)  # fmt: skip
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=() if DAILY.get(name) == number else pytest.mark.nightly)
        for name in COMMANDS
        for number in _SIGNALS
        if name != "built"
    ],
)
def test_a_killed_command_leaves_no_process_and_runs_again(
    prepared: Callable[[tuple[str, ...]], Path], tmp_path: Path, name: str, number: int
) -> None:
    folder, whole = (shutil.copytree(prepared(_BEFORE.get(name, ())), tmp_path / each) for each in ("killed", "whole"))
    for each in (folder, whole) if name == "stage quantize" else ():
        (each / "params.yaml").write_text(_SMALL)
    started = time.monotonic()
    code, out, said = Marked(COMMANDS[name], whole).end()
    seconds = time.monotonic() - started
    assert code in (0, 1), said
    drawn = random.Random(f"{name} {number}")
    before = set(files(folder))
    for _ in range(examples(1)):
        running = Marked(COMMANDS[name], folder)
        time.sleep(max(_STARTED, seconds * drawn.random()))
        os.kill(running.process.pid, number)
        ended, _, said = running.end()
        assert running.survivors() == []
        assert "Traceback" not in said
        if ended == 128 + number:  # else it was over already
            left = [each for each in set(files(folder)) - before if not (".passfit-" in each or _is_of_server(each))]
            assert name.startswith("stage") or left == []
        if ended in (0, 1):
            assert _results(folder) == _results(whole)
    ended, again, said = Marked(COMMANDS[name], folder).end()
    assert ended == code, said
    assert again == out or name not in _SAY
    assert _results(folder) == _results(whole)
