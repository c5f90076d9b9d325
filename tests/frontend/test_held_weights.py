"""The weights of a model are held once while it is imported, whatever passes change around them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.helper import make_node as node

from passfit.frontend.canonical.folding.fold_constants import fold
from passfit.frontend.imported_model import import_onnx

from ..models import model_of

_PEAK = """
import re, sys
from pathlib import Path
from passfit.artifacts.canonical_file import import_model_file
import_model_file(sys.argv[1], Path(sys.argv[2]))
print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def _layers(width: int) -> onnx.ModelProto:
    drawn = np.random.default_rng(0)
    weights = {f"w{place}": drawn.standard_normal((width, width), np.float32) for place in range(4)}
    nodes = [node("Gemm", [f"v{place}", f"w{place}"], [f"v{place + 1}"]) for place in range(4)]
    return model_of(nodes, {"v0": [1, width]}, ["v4"], weights)


def _peak(folder: Path, width: int, beside: bool) -> int:
    """Return the most bytes that an import takes in a process of its own."""
    folder.mkdir()
    onnx.save(_layers(width), folder / "m.onnx", save_as_external_data=beside, location="m.data")
    command = [sys.executable, "-c", _PEAK, str(folder / "m.onnx"), str(folder / "out" / "model.onnx")]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) << 10


@pytest.mark.slow
@pytest.mark.parametrize("beside", [False, True], ids=["one file", "side file"])
def test_an_import_takes_at_most_twice_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    monkeypatch.setenv("PASSFIT_CACHE", str(tmp_path / "cache"))
    small, large = _peak(tmp_path / "small", 32, beside), _peak(tmp_path / "large", 2048, beside)
    assert large - small <= 2 * 4 * 2048 * 2048 * 4


def test_folding_keeps_large_constants_where_they_are() -> None:
    model = _layers(64)
    kept = {id(tensor): tensor for tensor in model.graph.initializer}
    assert fold(model) is model
    assert all(id(tensor) in kept for tensor in model.graph.initializer)


def test_a_model_keeps_no_room_for_constants_that_are_folded() -> None:
    model = _layers(64)
    model.graph.node.insert(0, node("Transpose", ["w0"], ["t"]))
    model.graph.node[1].input[1] = "t"
    expected = onnx.numpy_helper.to_array(model.graph.initializer[0]).T
    folded = fold(model)
    assert folded is not model
    found = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in folded.graph.initializer}
    np.testing.assert_array_equal(found["t"], expected)
    assert found.keys() == {"t", "w1", "w2", "w3"}


def test_an_import_is_the_same_by_parts(tmp_path: Path) -> None:
    onnx.save(_layers(600), tmp_path / "m.onnx")  # constants over the size of a part
    canonical, _ = import_onnx(tmp_path / "m.onnx")
    onnx.save(canonical, tmp_path / "again.onnx")
    assert import_onnx(tmp_path / "again.onnx")[0] == canonical
