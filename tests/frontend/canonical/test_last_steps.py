"""Compare recurrent nodes read at their last step with the nodes as given, by ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit.frontend.canonical.last_steps import read_last_steps
from passfit.frontend.canonical.shapes import infer_shapes
from passfit.frontend.canonicalise import import_model

from ...models import model_of, run, save

node = helper.make_node
STEPS, BATCH, INPUTS, HIDDEN = 7, 2, 3, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _imported(
    tmp_path: Path, op: str, readers: list[onnx.NodeProto], constants: dict[str, object], **attributes: object
) -> bool:
    """Import a node and its readers, and compare both; tell whether the loop over its steps makes all states."""
    rng = np.random.default_rng(0)
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    shapes = {"w": (count, GATES[op] * HIDDEN, INPUTS), "r": (count, GATES[op] * HIDDEN, HIDDEN)}
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    arrays |= {name: np.asarray(value) for name, value in constants.items()}
    nodes = [node(op, ["x", "w", "r"], ["states"], hidden_size=HIDDEN, **attributes), *readers]
    model = model_of(nodes, {"x": [STEPS, BATCH, INPUTS]}, ["y"], arrays)
    imported = import_model(save(model, tmp_path))
    x = rng.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)
    np.testing.assert_allclose(run(imported, {"x": x})[0], run(model, {"x": x})[0], rtol=1e-5, atol=1e-6)
    (loop,) = (each for each in imported.graph.node if each.op_type == "Scan")
    return len(loop.output) == len(loop.input)  # x is a sequence for the states


@pytest.mark.parametrize("op", GATES)
def test_two_directions_at_the_last_step_are_one_and_a_step_of_the_other(tmp_path: Path, op: str) -> None:
    readers = [
        node("Transpose", ["states"], ["t"], perm=[0, 2, 1, 3]), node("Reshape", ["t", "shape"], ["s"]),
        node("Transpose", ["s"], ["rows"], perm=[1, 0, 2]), node("Gather", ["rows", "last"], ["y"], axis=1),
    ]  # fmt: skip
    constants = {"shape": [STEPS, BATCH, 2 * HIDDEN], "last": -1}
    activations = {"activations": ["Relu", "Tanh"]} if op == "RNN" else {}
    assert not _imported(tmp_path, op, readers, constants, direction="bidirectional", **activations)


def _rows_first(last: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [node("Squeeze", ["states", "one"], ["s"]), node("Transpose", ["s"], ["t"], perm=[1, 0, 2]), last]


@pytest.mark.parametrize("op", GATES)
def test_the_last_step_of_a_batch_needs_no_other_states(tmp_path: Path, op: str) -> None:
    readers = _rows_first(node("Gather", ["t", "last"], ["y"], axis=1))
    assert not _imported(tmp_path, op, readers, {"one": [1], "last": -1})


def test_a_slice_of_reshaped_states_is_a_last_step(tmp_path: Path) -> None:
    readers = [node("Reshape", ["states", "shape"], ["s"]), node("Slice", ["s", "start", "end", "axis"], ["y"])]
    constants = {"shape": [STEPS, BATCH * HIDDEN], "start": [-1], "end": [2**31], "axis": [0]}
    assert not _imported(tmp_path, "LSTM", readers, constants)


def test_of_a_reverse_direction_the_first_step_is_the_last_state(tmp_path: Path) -> None:
    for index, unread in ((0, True), (-1, False)):
        readers = _rows_first(node("Gather", ["t", "last"], ["y"], axis=1))
        assert _imported(tmp_path, "GRU", readers, {"one": [1], "last": index}, direction="reverse") != unread


@pytest.mark.parametrize(
    "readers",
    [
        _rows_first(node("Gather", ["t", "inner"], ["y"], axis=1)),
        _rows_first(node("Gather", ["t", "last"], ["y"], axis=0)),
        [
            *_rows_first(node("Gather", ["t", "last"], ["g"], axis=1)),
            node("ReduceSum", ["t"], ["m"]),
            node("Add", ["g", "m"], ["y"]),
        ],
    ],
    ids=["another step", "a sequence of the batch", "all steps besides"],
)
def test_other_states_are_kept(tmp_path: Path, readers: list[onnx.NodeProto]) -> None:
    assert _imported(tmp_path, "LSTM", readers, {"one": [1], "last": -1, "inner": 3})


def test_states_that_a_loop_reads_too_are_kept() -> None:
    count, go = np.asarray(2), np.asarray(True)
    body = helper.make_graph(
        [node("Identity", ["on"], ["still"]), node("ReduceSum", ["states"], ["sum"], keepdims=0), node("Add", ["total", "sum"], ["more"])],
        "body",
        [
            helper.make_tensor_value_info("turn", onnx.TensorProto.INT64, []), helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("total", onnx.TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("still", onnx.TensorProto.BOOL, []), helper.make_tensor_value_info("more", onnx.TensorProto.FLOAT, [])],
    )  # fmt: skip
    nodes = [
        node("RNN", ["x", "w", "r"], ["states"], hidden_size=HIDDEN), node("Gather", ["states", "last"], ["g"], axis=0),
        node("Loop", ["count", "go", "zero"], ["sums"], body=body), node("Add", ["g", "sums"], ["y"]),
    ]  # fmt: skip
    arrays = {
        "w": np.ones((1, HIDDEN, INPUTS), np.float32),
        "r": np.ones((1, HIDDEN, HIDDEN), np.float32),
        "zero": np.float32(0),
    }
    arrays |= {"last": np.asarray(-1), "count": count, "go": go}
    model = infer_shapes(model_of(nodes, {"x": [STEPS, BATCH, INPUTS]}, ["y"], arrays))
    assert read_last_steps(model) is model
