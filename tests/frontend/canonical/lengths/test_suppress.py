"""Check NonMaxSuppression against ONNX Runtime: order, ties, thresholds, batches and classes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.backend import Backend
from passfit.errors import ModelError

from ....models import NodeBuilder, model_of, run
from ....profiles import examples
from .checking import check, imported


def detector(
    batches: int, classes: int, boxes: int, most: int, overlap: float, score: float | None, center: int
) -> onnx.ModelProto:
    names = ["boxes", "scores", "most", "overlap", *(["score"] if score is not None else [])]
    node = helper.make_node("NonMaxSuppression", names, ["y"], center_point_box=center)
    constants = {"most": np.array([most]), "overlap": np.array([overlap], np.float32)}
    if score is not None:
        constants["score"] = np.array([score], np.float32)
    inputs = {"boxes": [batches, boxes, 4], "scores": [batches, classes, boxes]}
    return model_of([node], inputs, ["y"], constants, dtypes={"y": TensorProto.INT64})


def detections(model: onnx.ModelProto, seed: int, count: int) -> list[dict[str, np.ndarray]]:
    """Draw boxes and scores, many equal: on a grid, of two scores, without area."""
    random = np.random.default_rng(seed)
    shapes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in model.graph.input}
    found = []
    for number in range(count):
        steps = (1 << 20, 4, 3)[number % 3]
        drawn = {name: random.random(shape).astype(np.float32) for name, shape in shapes.items()}
        found.append({name: np.floor(value * steps) / np.float32(steps) for name, value in drawn.items()})
    return found


@settings(max_examples=examples(8))
@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 14), st.sampled_from((1, 3, 1 << 40)),
    st.sampled_from((0.0, 0.25, 0.5, 1.0)), st.sampled_from((None, 0.5, 2.0)), st.integers(0, 1), st.integers(0, 99), st.integers(1, 60),
)  # fmt: skip
def test_boxes_are_those_of_onnx_runtime(
    batches: int,
    classes: int,
    boxes: int,
    most: int,
    overlap: float,
    score: float | None,
    center: int,
    seed: int,
    bound: int,
) -> None:
    model = detector(batches, classes, boxes, most, overlap, score, center)
    check(model, detections(model, seed, 6), bounds={"y": bound})


@pytest.mark.parametrize("batches, classes, score", [(1, 1, None), (2, 3, 0.3)])
def test_the_library_selects_the_same_boxes(batches: int, classes: int, score: float | None) -> None:
    model = detector(batches, classes, 30, 1 << 40, 0.3, score, 0)
    library = Backend.prepare(model)
    for inputs in detections(model, 5, 6):
        assert np.array_equal(library.run(inputs)[0], run(model, inputs)[0])


def test_a_length_may_limit_the_boxes() -> None:
    b = NodeBuilder()
    scores = b.node("Reshape", b.node("Gather", "x", b.constant(np.array(0)), axis=1), b.constant(np.array([1, 1, 9])))
    places = b.node(
        "NonZero", b.node("Greater", b.node("Reshape", "x", b.constant(np.array([-1]))), b.constant(np.float32(0.9)))
    )
    most = b.node("Slice", b.node("Shape", places), b.constant(np.array([1])), b.constant(np.array([2])))
    boxes = b.node("Unsqueeze", "x", b.constant(np.array([0])))
    selected = b.node("NonMaxSuppression", boxes, scores, most, b.constant(np.array([0.5], np.float32)))
    model = b.model([9, 4], selected, dtypes={selected: TensorProto.INT64})
    random = np.random.default_rng(0)
    check(model, [{"x": (random.random((9, 4)) * scale).astype(np.float32)} for scale in (0.5, 0.95, 1.0, 2.0)])


def test_the_data_may_decide_how_many_boxes_are_selected() -> None:
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"])
    model = model_of(
        [node], {"boxes": [1, 9, 4], "scores": [1, 2, 9], "most": [1]}, ["y"], {"overlap": np.array([0.5], np.float32)},
        dtypes={"y": TensorProto.INT64, "most": TensorProto.INT64},
    )  # fmt: skip
    model.graph.input[2].type.tensor_type.shape.dim[0].dim_value = 1
    drawn = detections(detector(1, 2, 9, 1, 0.5, None, 0), 3, 3)
    check(model, [{**each, "most": np.array([most])} for each in drawn for most in (0, 1, 4, 99)])


@pytest.mark.parametrize("most", [None, 0, -1])
def test_one_without_a_limit_selects_nothing_and_says_what_to_give(most: int | None) -> None:
    names = ["boxes", "scores", *(["most"] if most is not None else [])]
    node = helper.make_node("NonMaxSuppression", names, ["y"])
    constants = {} if most is None else {"most": np.array([most])}
    inputs = {"boxes": [1, 9, 4], "scores": [1, 2, 9]}
    model = model_of([node], inputs, ["y"], constants, dtypes={"y": TensorProto.INT64})
    with pytest.raises(ModelError, match="selects nothing: its bound is 0. Give it max_output_boxes_per_class"):
        imported(model)
