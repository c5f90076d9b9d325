"""Check the tails of detectors as exporters write them against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from passfit.backend import Backend

from ....models import NodeBuilder, run
from .checking import check

ANCHORS, CLASSES, MOST = 40, 3, 10


def ints(b: NodeBuilder, *values: int) -> str:
    return b.constant(np.array(values, np.int64))


def number(b: NodeBuilder, value: float | int) -> str:
    return b.constant(np.array(value, np.float32 if isinstance(value, float) else np.int64))


def rows(b: NodeBuilder, value: str) -> str:
    return b.node("Unsqueeze", b.node("Gather", b.node("Shape", value), number(b, 0), axis=0), ints(b, 0))


def masked(b: NodeBuilder, value: str, mask: str) -> str:
    """Return value[mask], as torch writes it: with a NonZero of its own."""
    return b.node("GatherND", value, b.node("Transpose", b.node("NonZero", mask), perm=[1, 0]))


def expanded(b: NodeBuilder, value: str, shape: str) -> str:
    """Return torch's expand: -1 keeps a size."""
    ones = b.node(
        "ConstantOfShape", b.node("Shape", shape), value=onnx.helper.make_tensor("v", TensorProto.INT64, [1], [1])
    )
    kept = b.node("Equal", shape, b.node("Mul", ones, number(b, -1)))
    return b.node("Expand", value, b.node("Where", kept, ones, shape))


def padded(b: NodeBuilder, value: str, total: int) -> str:
    """Return torch's pad of (0, 0, 0, total - rows): widths from the last axis on, in pairs."""
    rest = b.node("Sub", ints(b, total), rows(b, value))
    widths = b.node("Concat", ints(b, 0), ints(b, 0), ints(b, 0), rest, axis=0)
    pairs = b.node("Reshape", widths, ints(b, -1, 2))
    turned = b.node("Slice", pairs, ints(b, -1), ints(b, -(2**63) + 1), ints(b, 0), ints(b, -1))
    pads = b.node("Reshape", b.node("Transpose", turned, perm=[1, 0]), ints(b, -1))
    return b.node("Pad", value, b.node("Cast", pads, to=TensorProto.INT64), number(b, 0.0))


def ultralytics() -> onnx.ModelProto:
    """Build the tail of `export(nms=True)`: scores above a threshold, boxes shifted by class, rows filled up."""
    b = NodeBuilder()
    boxes, scores = b.node("Split", "x", ints(b, 4, CLASSES), axis=2, results=2), b.results()[1]
    best = b.node("ReduceMax", scores, axes=[2], keepdims=0)
    label = b.node("ArgMax", scores, axis=2, keepdims=0)
    box, score, kind = (b.node("Gather", each, number(b, 0), axis=0) for each in (boxes, best, label))
    mask = b.node("Greater", score, number(b, 0.6))
    box, score, kind = (masked(b, each, mask) for each in (box, score, kind))
    scale = number(b, 1 / CLASSES)
    near = b.node("Mul", b.node("Div", box, number(b, 320.0)), scale)
    column = b.node("Reshape", kind, b.node("Concat", rows(b, kind), ints(b, 1), axis=0))
    offset = expanded(b, column, b.node("Concat", rows(b, kind), ints(b, 4), axis=0))
    shifted = b.node("Add", near, b.node("Mul", b.node("Cast", offset, to=TensorProto.FLOAT), scale))
    selected = b.node(
        "NonMaxSuppression", b.node("Unsqueeze", shifted, ints(b, 0)), b.node("Unsqueeze", b.node("Unsqueeze", score, ints(b, 0)), ints(b, 0)),
        ints(b, 2**62), b.constant(np.array([0.45], np.float32)),
    )  # fmt: skip
    kept = b.node("Squeeze", b.node("Gather", selected, ints(b, 2), axis=1), ints(b, 1))
    kept = b.node("Slice", kept, ints(b, 0), ints(b, MOST), ints(b, 0))
    box, score, kind = (b.node("Gather", each, kept, axis=0) for each in (box, score, kind))
    score, kind = (b.node("Reshape", each, ints(b, -1, 1)) for each in (score, kind))
    rows_found = b.node("Concat", box, score, b.node("Cast", kind, to=TensorProto.FLOAT), axis=-1)
    result = b.node("Unsqueeze", padded(b, rows_found, MOST), ints(b, 0))
    return b.model([1, ANCHORS, 4 + CLASSES], result)


def end_to_end() -> onnx.ModelProto:
    """Build the tail of YOLOv7's `--end2end`: x[batch, box, :] by one index into the flattened rows."""
    b = NodeBuilder()
    boxes, scores = b.node("Split", "x", ints(b, 4, CLASSES), axis=2, results=2), b.results()[1]
    best = b.node("ReduceMax", scores, axes=[2], keepdims=1)
    label = b.node("Cast", b.node("ArgMax", scores, axis=2, keepdims=1), to=TensorProto.FLOAT)
    shifted = b.node("Add", boxes, b.node("Mul", label, number(b, 640.0)))
    selected = b.node(
        "NonMaxSuppression", shifted, b.node("Transpose", best, perm=[0, 2, 1]), ints(b, MOST),
        b.constant(np.array([0.45], np.float32)), b.constant(np.array([0.25], np.float32)),
    )  # fmt: skip
    batch, place = (b.node("Gather", selected, number(b, column), axis=1) for column in (0, 2))
    index = b.node("Add", b.node("Mul", batch, number(b, ANCHORS)), place)
    parts = [b.node("Cast", b.node("Unsqueeze", batch, ints(b, 1)), to=TensorProto.FLOAT)]
    for value, width in ((boxes, 4), (label, 1), (best, 1)):
        flat = b.node("Reshape", value, ints(b, 2 * ANCHORS, width))
        taken = b.node("Gather", flat, index, axis=0)
        parts.append(b.node("Reshape", taken, b.node("Concat", b.node("Shape", index), ints(b, width), axis=0)))
    return b.model([2, ANCHORS, 4 + CLASSES], b.node("Concat", *parts, axis=1))


def two_stages() -> onnx.ModelProto:
    """Build proposals as torchvision does: small boxes out, the best kept, regions pooled, classified row by row."""
    b = NodeBuilder()
    box, score = (
        b.node("Split", b.node("Gather", "x", number(b, 0), axis=0), ints(b, 4, CLASSES), axis=1, results=2),
        b.results()[1],
    )
    score = b.node("Gather", score, number(b, 0), axis=1)
    low, high = (b.node("Slice", box, ints(b, start), ints(b, start + 2), ints(b, 1)) for start in (0, 2))
    sides = b.node("Sub", high, low)
    large = b.node(
        "ReduceMin",
        b.node("Cast", b.node("Greater", sides, number(b, 20.0)), to=TensorProto.FLOAT),
        axes=[1],
        keepdims=0,
    )
    places = b.node("Squeeze", b.node("NonZero", b.node("Cast", large, to=TensorProto.BOOL)), ints(b, 0))
    box, score = (b.node("Gather", each, places, axis=0) for each in (box, score))
    limit = b.node("Add", b.node("ReduceMax", box, keepdims=0), number(b, 1.0))
    level = b.node("Cast", b.node("ConstantOfShape", rows(b, box)), to=TensorProto.FLOAT)
    shifted = b.node("Add", box, b.node("Unsqueeze", b.node("Mul", level, limit), ints(b, 1)))
    selected = b.node(
        "NonMaxSuppression", b.node("Unsqueeze", shifted, ints(b, 0)), b.node("Unsqueeze", score, ints(b, 0, 1)),
        ints(b, 2**62), b.constant(np.array([0.7], np.float32)),
    )  # fmt: skip
    kept = b.node("Squeeze", b.node("Gather", selected, ints(b, 2), axis=1), ints(b, 1))
    kept = b.node("Slice", kept, ints(b, 0), ints(b, MOST), ints(b, 0))
    box = b.node("Gather", box, kept, axis=0)
    picture = b.constant(np.random.default_rng(0).standard_normal((1, 2, 16, 16)).astype(np.float32))
    images = b.node("Cast", b.node("ConstantOfShape", rows(b, box)), to=TensorProto.INT64)
    pooled = b.node("RoiAlign", picture, box, images, output_height=3, output_width=3, spatial_scale=0.05)
    features = b.node("Conv", pooled, b.weight(4, 2, 3, 3))
    return b.model([1, ANCHORS, 4 + CLASSES], b.node("Gemm", b.node("Flatten", features), b.weight(4, 5), b.weight(5)))


def guarded() -> onnx.ModelProto:
    """Build torchvision's batched_nms as TorchScript leaves it: an If returns no index where no box is likely."""
    b = NodeBuilder()
    box, scores = (
        b.node("Split", b.node("Gather", "x", number(b, 0), axis=0), ints(b, 4, CLASSES), axis=1, results=2),
        b.results()[1],
    )
    best, kind = b.node("ReduceMax", scores, axes=[1], keepdims=0), b.node("ArgMax", scores, axis=1, keepdims=0)
    mask = b.node("Greater", best, number(b, 0.6))
    box, best, kind = (masked(b, each, mask) for each in (box, best, kind))
    empty = b.node("Equal", b.node("ReduceProd", b.node("Shape", box), keepdims=0), number(b, 0))
    before = len(b.nodes)
    limit = b.node("Add", b.node("ReduceMax", box, keepdims=0), number(b, 1.0))
    shifted = b.node(
        "Add", box, b.node("Unsqueeze", b.node("Mul", b.node("Cast", kind, to=TensorProto.FLOAT), limit), ints(b, 1))
    )
    selected = b.node(
        "NonMaxSuppression", b.node("Unsqueeze", shifted, ints(b, 0)), b.node("Unsqueeze", best, ints(b, 0, 1)),
        ints(b, 2**62), b.constant(np.array([0.5], np.float32)),
    )  # fmt: skip
    kept = b.node("Squeeze", b.node("Gather", selected, ints(b, 2), axis=1), ints(b, 1))
    other = onnx.helper.make_graph(
        renamed(b.nodes[before:]), "other", [], [onnx.helper.make_value_info(f"{kept}_", index_type())]
    )
    none = onnx.helper.make_node(
        "Constant", [], ["none"], value=onnx.helper.make_tensor("v", TensorProto.INT64, [0], [])
    )
    then = onnx.helper.make_graph([none], "then", [], [onnx.helper.make_value_info("none", index_type())])
    del b.nodes[before:]
    kept = b.node("If", b.node("Cast", empty, to=TensorProto.BOOL), then_branch=then, else_branch=other)
    kept = b.node("Slice", kept, ints(b, 0), ints(b, MOST), ints(b, 0))
    box, best = b.node("Gather", box, kept, axis=0), b.node("Gather", best, kept, axis=0)
    return b.model([1, ANCHORS, 4 + CLASSES], b.node("Concat", box, b.node("Unsqueeze", best, ints(b, 1)), axis=1))


def index_type() -> onnx.TypeProto:
    return onnx.helper.make_tensor_type_proto(TensorProto.INT64, [None])


def renamed(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Return the nodes of a branch with names that the graph around it does not have."""
    made = {name for node in nodes for name in node.output}
    renames = []
    for node in nodes:
        names = [f"{name}_" if name in made else name for name in node.input]
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        renames.append(onnx.helper.make_node(node.op_type, names, [f"{name}_" for name in node.output], **attributes))
    return renames


MODELS = {each.__name__: each for each in (ultralytics, end_to_end, two_stages, guarded)}


def predictions(shape: tuple[int, ...], count: int) -> list[dict[str, np.ndarray]]:
    """Draw boxes in a picture of 320 pixels, and scores; in the last case all scores are low."""
    random, found = np.random.default_rng(1), []
    for case in range(count):
        corner, size = random.random((*shape[:2], 2)) * 240, random.random((*shape[:2], 2)) * 80
        scores = random.random((*shape[:2], CLASSES)) * (1 if case < count - 1 else 0.1)
        found.append({"x": np.concatenate([corner, corner + size, scores], 2).astype(np.float32)})
    return found


def shape_of_input(model: onnx.ModelProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)


@pytest.mark.parametrize("name", MODELS)
def test_detections_are_those_of_onnx_runtime(name: str) -> None:
    model = MODELS[name]()
    canonical = check(model, predictions(shape_of_input(model), 5))
    # boxes behind the most that are read are not selected
    scans = [node for node in canonical.graph.node if node.op_type == "Scan"]
    trips = {value.name: value for value in canonical.graph.value_info}
    assert all(trips[node.output[-1]].type.tensor_type.shape.dim[0].dim_value <= MOST for node in scans)


@pytest.mark.parametrize("name", MODELS)
def test_a_library_finds_what_onnx_runtime_does(name: str) -> None:
    model = MODELS[name]()
    library = Backend.prepare(model)
    for inputs in predictions(shape_of_input(model), 4):
        (found,), (expected,) = library.run(inputs), run(model, inputs)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
