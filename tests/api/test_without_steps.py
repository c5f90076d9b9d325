"""Test models without kernels, inputs, weights or an arena: they run as libraries, with all files written."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from passfit import api
from passfit.artifacts.html_report import folders_page
from passfit.memory import read_plan, read_report
from passfit.report.arena.explain import explain
from passfit.report.arena.explanation_table import explanation_table
from passfit.search.settings import SearchSettings
from passfit.targets import get_target, how_to_run

from ..models import model_of, save

pytestmark = pytest.mark.slow

HOST = get_target("x86-64")
native = pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3")
node = helper.make_node


def written(folder: Path, name: str) -> Path:
    """A model by its name: nodes, inputs, outputs, constants."""
    nodes, inputs, outputs, constants = {
        "constant": ([], {}, {"c": [4]}, {"c": np.arange(4, dtype=np.float32)}),
        "empty": ([node("Relu", ["x"], ["y"])], {"x": [0, 3]}, {"y": [0, 3]}, {}),
        "ports": ([node("Split", ["x"], ["a", "b"], num_outputs=2)], {"x": [8], "e": [0]}, {"x": [8], "b": [4], "e": [0]}, {}),
    }[name]  # fmt: skip
    return save(model_of(nodes, inputs, outputs, constants, opset=18), folder, f"{name}.onnx")


@native
@pytest.mark.parametrize("name", ["constant", "empty", "ports"])
def test_the_library_runs_and_the_report_is_of_one_piece(name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = api.compile_model(written(tmp_path, name), HOST, out=out, search=SearchSettings(workers=0))
    assert report.measured.ran and report.measured.max_abs_error == 0.0 and report.best.kernels == 0
    assert report.best == read_report(out / "footprint.json").best

    saved = read_plan(out / "plan.json")
    assert explanation_table(explain(saved.program, saved.plan, saved.alignment))
    assert f"{name} @ x86-64" in folders_page([out])

    found = _called(out / f"lib{name}.so", name, saved.program)
    x = np.arange(8, dtype=np.float32)
    expected = {"constant": [np.arange(4)], "empty": [np.zeros((0, 3))], "ports": [x, x[4:], np.zeros(0)]}[name]
    assert [each.shape for each in found] == [each.shape for each in expected]
    assert all(map(np.array_equal, found, expected))


def _called(file: Path, name: str, program) -> list[np.ndarray]:
    """Return the outputs for inputs 0, 1, 2 …; all pointers must be valid, also those to no bytes."""
    library = ctypes.CDLL(str(file))

    def place(kind: str, number: int) -> int | None:
        return getattr(library, f"{name}_{kind}")(number)

    for kind in ("input", "output"):
        getattr(library, f"{name}_{kind}").restype = ctypes.c_void_p
    for number, port in enumerate(program.inputs):
        nbytes = program.tensors[port.tensor].nbytes
        ctypes.memmove(place("input", number), np.arange(nbytes // 4, dtype=np.float32).tobytes(), nbytes)
    assert getattr(library, f"{name}_run")() == 0
    found = []
    for number, port in enumerate(program.outputs):
        tensor, at = program.tensors[port.tensor], place("output", number)
        assert at
        found.append(np.frombuffer(ctypes.string_at(at, tensor.nbytes), np.float32).reshape(tensor.shape))
    assert place("input", len(program.inputs)) is None and place("output", len(program.outputs)) is None
    return found
