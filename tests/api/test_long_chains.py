"""Test long chains of element-wise operators that read a value twice: they compile, and match ONNX Runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from ..models import model_of

pytestmark = [pytest.mark.tvm, pytest.mark.slow]

#: seconds; it takes ten, and a tree of 2**16 would take days
_STUCK = 300


def _model(steps: list[str]) -> onnx.ModelProto:
    """Make steps that read the last result twice, or have one operand."""
    nodes, last = [], "x"
    for number, step in enumerate(steps):
        other = last
        if step == "swish":
            other = f"s{number}"
            nodes.append(helper.make_node("Sigmoid", [last], [other]))
        two = {"swish": "Mul", "double": "Add"}.get(step)
        nodes.append(helper.make_node(two or step, [last, other] if two else [last], [f"t{number}"]))
        last = f"t{number}"
    return model_of(nodes, {"x": [1, 4, 6, 6]}, {last: [1, 4, 6, 6]}, name="chain")


def test_a_chain_of_values_read_twice_compiles(tmp_path: Path):
    model = tmp_path / "chain.onnx"
    onnx.save(_model(["swish"] * 16 + ["double"] * 18 + ["Tanh", "swish", "Sin", "double"] * 2), model)
    command = [sys.executable, "-m", "passfit.cli", "compile", str(model), "--target", "x86-64", "--evaluations", "2"]
    done = subprocess.run([*command, "--out", str(tmp_path / "out")], timeout=_STUCK, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    footprint = json.loads((tmp_path / "out" / "footprint.json").read_text())
    assert footprint["measured"]["max_rel_error"] <= 1e-4
    assert footprint["best"]["kernels"] < 40
