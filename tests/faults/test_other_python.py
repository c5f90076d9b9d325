"""Another Python imports and compiles a model to the same bytes: `PASSFIT_OTHER_PYTHON` names it, in an environment with passfit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..results import reproducible

_IMPORT = "from pathlib import Path; from passfit.api import import_model_file; import_model_file('net.onnx', Path('out/net.onnx'))"
_COMPILE = ("-m", "passfit.cli", "compile", "net.onnx", "--target", "x86-64", "--strategy", "greedy", "--out", "built")


@pytest.mark.fault("another machine", "another version of Python", "the same bytes")
@pytest.mark.slow
def test_another_python_writes_the_same_bytes(save_tiny_cnn: Callable[..., Path], tmp_path: Path) -> None:
    other = os.environ.get("PASSFIT_OTHER_PYTHON")
    if not other:
        pytest.skip("PASSFIT_OTHER_PYTHON names no other Python")
    model = save_tiny_cnn(tmp_path / "tiny.onnx").read_bytes()
    found, versions = [], []
    for place, python in enumerate((sys.executable, other)):
        (folder := tmp_path / str(place)).mkdir()
        (folder / "net.onnx").write_bytes(model)
        environment = os.environ | {"PASSFIT_STORE": f"{folder}-store", "PASSFIT_CACHE": f"{folder}-cache"}
        for words in (("-c", _IMPORT), _COMPILE, ("-V",)):
            done = subprocess.run([python, *words], cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        versions.append(done.stdout)
        found.append((reproducible(folder / "out"), reproducible(folder / "built")))
    assert versions[0] != versions[1]
    assert found[0] == found[1]
