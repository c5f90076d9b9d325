"""An open batch is 1, and said; other open dimensions are asked for."""

from __future__ import annotations

import re

import pytest
from onnx import TensorProto, helper

from passfit.errors import ModelError
from passfit.frontend.canonical.bind_shapes import bind_inputs, dimensions
from passfit.frontend.source.import_options import ImportOptions


def bound(shapes: dict[str, list], given: dict[str, list[int]] | None = None) -> tuple[dict[str, list], list[str]]:
    """Bind the inputs of these shapes; return them, and the sizes assumed in words."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    model = helper.make_model(helper.make_graph([], "g", ports, ports[:1]))
    assumed = bind_inputs(model, ImportOptions(given or {}))
    return {port.name: dimensions(port) for port in model.graph.input}, assumed


@pytest.mark.parametrize("name", ["batch", "N", "n", "b", "batch_size", "unk__6", None, "dynamic_axes_1"])
def test_an_open_leading_dimension_is_a_batch_of_one(name):
    found, (said,) = bound({"x": [name, 3, 8]})
    assert found == {"x": [1, 3, 8]}
    assert "'x'" in said and "batch of 1" in said and "--shape x=2x3x8" in said


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": ["n"]},  # a signal: its length
        {"x": ["sequence_length", 8]}, {"x": ["T", "batch", 8]}, {"x": ["frames", 80]},
        {"x": ["n", 8], "mask": [1, "n"]},  # the same name is a length elsewhere
        {"x": ["batch", 3, "height", 4]},
    ],
)  # fmt: skip
def test_lengths_are_asked_for(shapes):
    with pytest.raises(ModelError, match=re.escape("Not every input has a static shape")):
        bound(shapes)


def test_a_size_that_is_given_is_everybodys_and_nothing_is_assumed():
    assert bound({"x": ["n", 3], "z": ["n", 5]}, {"x": [4, 3]}) == ({"x": [4, 3], "z": [4, 5]}, [])
    assert bound({"x": [2, 3]}) == ({"x": [2, 3]}, [])
