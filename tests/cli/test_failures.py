"""Failures deep inside end with the exit code of their kind: a bug in a worker with 3, a stuck emulator with 2."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Model = Callable[..., Path]
_ROOT = Path(__file__).parents[2]
_BUGGY = """
import sys
from passfit.passes.sequence.catalogue import CATALOGUE
from passfit.search.evaluate import forked

def buggy(self, module):
    raise TypeError("a bug of ours")

forked.ALONE = 0
CATALOGUE["eliminate-common-subexpr"].apply = buggy
from passfit.cli import main
main()
"""
#: a target with another instruction set than any host of these tests
_STUCK = """
[tool.passfit.targets.stuck]
base = "visionfive2"
emulator = "qemu-stuck"
"""


@pytest.mark.tvm
@pytest.mark.parametrize("workers", [0, 2])
def test_a_bug_in_a_pass_ends_the_search_with_3(
    save_tiny_cnn: Model, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
):
    """Break a pass in the command's own process; workers are forked from it."""
    monkeypatch.setenv("PASSFIT_STORE", "off")  # an earlier search may have kept what the pass does
    model, out = save_tiny_cnn(tmp_path / "cnn.onnx"), tmp_path / "out"
    options = ["--target", "x86-64", "--workers", str(workers), "--strategy", "greedy", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", _BUGGY, "optimize", str(model), *options],
        cwd=_ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "in buggy" in done.stderr and "TypeError: a bug of ours" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("passfit: a bug in passfit")
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.fault("an emulator", "it never ends", "it is ended after its time, exit code 2 with its name")
def test_a_stuck_emulator_is_ended_and_named(
    monkeypatch: pytest.MonkeyPatch,
    refused: Callable[..., str],
    save_tiny_cnn: Model,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
):
    folder = tmp_path_factory.mktemp("bin")
    emulator, pid = folder / "qemu-stuck", folder / "pid"
    emulator.write_text(f"#!/bin/sh\necho $$ > '{pid}'\nexec sleep 1000\n")
    emulator.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text(_STUCK)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr("passfit.verify.linked.program._TIMEOUT_SECONDS", 2)
    model = save_tiny_cnn(tmp_path / "cnn.onnx")
    said = refused("compile", model, "--target", "stuck", "--strategy", "tvm-default", "--out", "out")
    assert "run by qemu-stuck, did not finish in 2 s" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
