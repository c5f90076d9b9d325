"""Check that inputs and outputs keep names, order and shapes, even if some are one value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from passfit.frontend.canonicalise import import_model
from passfit.frontend.source.import_options import ImportOptions

from ..models import model_of, run, save, shape_of
from ..profiles import examples

node = helper.make_node


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["x", "c", "d", "r", "same", "again", "k", "n"]), min_size=1, max_size=6))
def test_ports_keep_their_names_and_values(tmp_path: Path, outputs: list[str]) -> None:
    nodes = [
        node("Relu", ["x"], ["r"]), node("Identity", ["r"], ["same"]), node("Identity", ["same"], ["again"]),
        node("Identity", ["c"], ["k"]), node("Neg", ["again"], ["n"]),
    ]  # fmt: skip
    constants = {name: np.arange(6, dtype=np.float32).reshape(2, 3) for name in ("c", "d")}
    made = model_of(nodes, {"x": [2, 3]}, outputs, constants)
    imported = import_model(save(made, tmp_path))
    assert [value.name for value in imported.graph.input] == ["x"]
    assert [value.name for value in imported.graph.output] == outputs
    values = {"x": np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)}
    for got, expected in zip(run(imported, values), run(made, values), strict=True):
        np.testing.assert_array_equal(got, expected)
    again = import_model(save(imported, tmp_path, "again.onnx"))
    assert again.SerializeToString(deterministic=True) == imported.SerializeToString(deterministic=True)


def test_an_input_that_is_an_output_gets_its_shape(tmp_path: Path) -> None:
    made = model_of([node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, ["x", "y"])
    graph = import_model(save(made, tmp_path), ImportOptions({"x": (4, 3)})).graph
    assert [shape_of(value) for value in (*graph.input, *graph.output)] == [(4, 3)] * 3


def test_a_frozen_input_of_open_shape_that_is_an_output_gets_its_shape(tmp_path: Path) -> None:
    made = model_of([node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, ["x", "y"])
    graph = import_model(save(made, tmp_path), ImportOptions(fix={"x": [[1, 2, 3]]})).graph
    assert [shape_of(value) for value in graph.output] == [(1, 3)] * 2


@pytest.mark.parametrize("outputs", [["x", "y"], ["y", "x"]])
def test_a_frozen_input_may_be_an_output(outputs: list[str], tmp_path: Path) -> None:
    made = model_of([node("Neg", ["x"], ["y"])], {"x": [3]}, outputs)
    imported = import_model(save(made, tmp_path), ImportOptions(fix={"x": [1, 2, 3]}))
    found = dict(zip(outputs, run(imported, {}), strict=True))
    assert found["x"].tolist() == [1, 2, 3] and found["y"].tolist() == [-1, -2, -3]
    assert isinstance(imported, onnx.ModelProto) and not imported.graph.input
