"""Nodes are built with the operands and results that they have."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, TensorProto, numpy_helper

from passfit.frontend.canonical.node_builder import Names, NodeBuilder


@pytest.fixture
def build() -> NodeBuilder:
    return NodeBuilder("stem", Names(GraphProto()))


def test_absent_operands_at_the_end_are_left_out(build: NodeBuilder) -> None:
    build.node("Clip", "x", "", "high")
    build.node("Resize", "x", "", "scales", "")
    build.node("Pad", "x", "pads", "", "")
    assert [list(node.input) for node in build.nodes] == [["x", "", "high"], ["x", "", "scales"], ["x", "pads"]]


def test_results_have_the_names_asked_for_or_new_ones(build: NodeBuilder) -> None:
    assert build.many("TopK", ["x", "k"], ["values", ""]) == ["values", ""]
    new = build.many("TopK", ["x", "k"], 2)
    assert build.node("Relu", "x", result="y") == "y"
    assert [list(node.output) for node in build.nodes] == [["values", ""], new, ["y"]]
    assert len({*new, "values", "y"}) == 4


@pytest.mark.parametrize("dtype", [np.float16, np.dtype(np.float16), "float16", TensorProto.FLOAT16])
def test_a_cast_is_to_a_dtype_in_any_words(build: NodeBuilder, dtype: object) -> None:
    assert build.cast("x", dtype, "y") == "y"  # type: ignore[arg-type]
    assert build.nodes[0].attribute[0].i == TensorProto.FLOAT16


def test_a_number_is_of_the_dtype_asked_for(build: NodeBuilder) -> None:
    build.number(1, np.float16)
    (tensor,) = build.initializers
    assert numpy_helper.to_array(tensor).dtype == np.float16 and not tensor.dims
