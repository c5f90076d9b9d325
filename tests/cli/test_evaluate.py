"""Test `passfit evaluate`: its table, its file, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from ..models import model_of, save
from .conftest import Done

Passfit = Callable[..., Done]
Refused = Callable[..., str]


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """Write a network that scores two classes, and four samples of it in `x.npz`."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = model_of(nodes, {"x": (1, 3)}, {"y": (1, 2)}, {"w": np.float32([[1, -1], [0, 1], [0.5, 0]])})
    values = np.float32([[1, 0, 0], [0, 1, 0], [2, 0, 1], [0, 3, 1]])
    np.savez(tmp_path / "x.npz", x=values, labels=[0, 1, 0, 0])
    np.save(tmp_path / "x.npy", values)
    return save(model, tmp_path, "net.onnx")


@pytest.mark.slow
def test_it_shows_and_writes_the_accuracy(passfit: Passfit, network: Path, tmp_path: Path):
    done = passfit("evaluate", network, "--data", "x.npz", "--target", "x86-64", "--out", "found")
    assert done.code == 0 and "4 samples, 4 with labels" in done.out and "0.75" in done.out and "100.00%" in done.out
    found = json.loads((tmp_path / "found" / "accuracy.json").read_text())
    assert (found["metric"], found["reference"]["value"], found["library"]["value"]) == ("accuracy", 0.75, 0.75)
    assert [each["sample"] for each in found["worst"]] == ["3"]
    assert passfit("compile", network, "--target", "x86-64", "--evaluations", "1", "--out", "lib").code == 0
    done = passfit("evaluate", network, "--data", "x.npz", "--result", "lib", "--metric", "f1")
    assert done.code == 0 and "f1" in done.out
    assert json.loads((tmp_path / "lib" / "accuracy.json").read_text())["metric"] == "f1"
    done = passfit("compile", network, "--target", "x86-64", "--evaluations", "1", "--data", "x.npy", "--out", "lib")
    assert done.code == 0 and "4 of 4 samples agree" in " ".join(done.out.split())
    assert not (tmp_path / "lib" / "accuracy.json").exists(), "it is that of the library before"


def test_what_is_missing_or_wrong_is_refused(refused: Refused, network: Path, tmp_path: Path):
    assert "none.npz' are missing" in refused("evaluate", network, "--data", "none.npz")
    assert "has no labels" in refused("evaluate", network, "--data", "x.npy", "--metric", "accuracy")
    assert "no metric 'acuracy'" in refused("evaluate", network, "--data", "x.npz", "--metric", "acuracy")
    assert "Omit --target" in refused("evaluate", network, "--data", "x.npz", "--result", ".", "--target", "rpi4")
    (tmp_path / "load.py").write_text("def samples():\n    raise KeyError('pictures')\n")
    assert "load.py', line 2: KeyError" in refused("evaluate", network, "--data", "load.py:samples")
    assert "load.py', line 2: KeyError" in refused(
        "compile", network, "--data", "load.py:samples", "--target", "x86-64", "--out", "out"
    )
