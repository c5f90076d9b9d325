"""Check a library with an output whose length the data decide: in C, in arrays, and under the names of onnxruntime."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import passfit
from passfit.runtime import InferenceSession
from passfit.targets import get_target, how_to_run

from ..models import model_of, run, save

pytestmark = pytest.mark.skipif(not how_to_run(get_target("x86-64")).native, reason="the host cannot run x86-64-v3")


def test_a_library_says_how_many_rows_are_valid(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["places"]),
        helper.make_node("Transpose", ["places"], ["pairs"], perm=[1, 0]),
        helper.make_node("GatherND", ["x", "pairs"], ["numbers"]),
        helper.make_node("Relu", ["x"], ["same"]),
    ]
    model = model_of(nodes, {"x": [2, 3]}, ["numbers", "same", "places"], dtypes={"places": TensorProto.INT64})
    found = passfit.compile(save(model, tmp_path), "x86-64", tmp_path / "out", evaluations=1, bounds={"places": 5})
    assert found.report.measured.ran and found.report.measured.verified_by == "onnxruntime"
    (archive,) = (tmp_path / "out").glob("*.so")
    name = archive.stem.removeprefix("lib")
    loaded, session = ctypes.CDLL(str(archive)), InferenceSession(tmp_path / "out")
    place, length = (getattr(loaded, f"{name}_{kind}") for kind in ("input", "output_length"))
    place.restype = ctypes.c_void_p
    assert [(each.name, each.shape) for each in session.get_outputs()] == [
        ("numbers", [None]), ("same", [2, 3]), ("places", [2, None]),
    ]  # fmt: skip
    for count in (0, 2, 5, 6):
        x = np.array([1, -2, 3, 4, -5, 6], np.float32) * (np.arange(6) < count)
        x = x.astype(np.float32).reshape(2, 3)
        numbers, same, places = run(model, {"x": x})
        expected = [numbers[:5], same, places[:, :5]]
        assert all(map(np.array_equal, session.run(None, {"x": x}), expected))
        results = found.run(x=x)
        assert list(results) == ["numbers", "same", "places"]
        assert all(map(np.array_equal, results.values(), expected))
        ctypes.memmove(place(0), x.ctypes.data, x.nbytes)
        assert getattr(loaded, f"{name}_run")() == 0
        assert [length(number) for number in range(6)] == [min(count, 5), 2, min(count, 5), 1, 1, -1]
    header = (tmp_path / "out" / f"{name}.h").read_text()
    assert f"#define {name.upper()}_OUTPUT2_AXIS 1" in header and "valid along axis 1 up to 'places_length'" in header
