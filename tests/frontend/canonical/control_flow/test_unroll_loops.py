"""Compare unrolled Loop and Scan with the nodes as given, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonical.control_flow.unroll_loops import LOOPS
from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ROWS = np.random.default_rng(3).standard_normal((5, 2, 3)).astype(np.float32)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """A node of names given as words; `_` is a missing one."""
    names = [["" if name == "_" else name for name in each.split()] for each in (inputs, outputs)]
    return helper.make_node(op, *names, **attributes)


def body(nodes: Sequence[onnx.NodeProto], inputs: dict, outputs: dict, **constants: np.ndarray) -> onnx.GraphProto:
    """A subgraph; ports are dtypes and shapes by name."""
    given, made = (
        [helper.make_tensor_value_info(name, *port) for name, port in each.items()] for each in (inputs, outputs)
    )
    return helper.make_graph(nodes, "body", given, made, [numpy_helper.from_array(v, k) for k, v in constants.items()])


def loop_of(nodes: Sequence[onnx.NodeProto], condition: str = "on", **constants: np.ndarray) -> onnx.GraphProto:
    """A body that turns `h` into `h2`, and collects `row`."""
    return body(
        nodes,
        {"i": (INT, []), "on": (BOOL, []), "h": (FLOAT, [2, 3])},
        {condition: (BOOL, []), "h2": (FLOAT, [2, 3]), "row": (FLOAT, [2, 3])},
        **constants,
    )


STEP = [
    node("Gather", "x i", "xi", axis=0), node("Mul", "h half", "less"), node("Add", "less xi", "h2"), node("Neg", "h2", "row")
]  # fmt: skip
HALF = np.asarray(0.5, np.float32)


def same(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """Compare the imported model with `model`; return the imported one."""
    inputs = {"x": ROWS, "h0": ROWS[0] * 2}
    given = {port.name: inputs[port.name] for port in model.graph.input}
    imported = import_model(save(model, folder))
    assert not {each.op_type for each in imported.graph.node} & (LOOPS | {"If"})
    for got, expected in zip(run(imported, given), run(model, given), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    return imported


def counting_loop(step: Sequence[onnx.NodeProto]) -> onnx.NodeProto:
    """A Loop with a counter as a state, which ends it."""
    nodes = [*step, node("Add", "n one", "n2"), node("Less", "n2 most", "go")]
    counting = loop_of(nodes, "go", half=HALF, one=np.asarray(1, np.int64))
    counting.input.append(helper.make_tensor_value_info("n", INT, []))
    counting.output.insert(2, helper.make_tensor_value_info("n2", INT, []))
    return node("Loop", "_ _ h0 n0", "h n3 y", body=counting)


def nested_step() -> list[onnx.NodeProto]:
    """Nodes of a body with a Loop and an If in it."""
    inner = body(
        [node("Add", "g xi", "g2")], {"j": (INT, []), "go": (BOOL, []), "g": (FLOAT, [2, 3])},
        {"go": (BOOL, []), "g2": (FLOAT, [2, 3])},
    )  # fmt: skip
    branches = {
        f"{name}_branch": body([node(op, "less", name)], {}, {name: (FLOAT, [2, 3])})
        for name, op in (("then", "Neg"), ("else", "Abs"))
    }
    return [
        node("Gather", "x i", "xi", axis=0), node("Loop", "two _ h", "less", body=inner), node("ReduceSum", "xi", "s", keepdims=0),
        node("Less", "s half", "c"), node("If", "c", "h2", **branches), node("Identity", "h2", "row"),
    ]  # fmt: skip


def scan_along(axis: int, directions: tuple[int, int]) -> tuple[onnx.NodeProto, list[int]]:
    """A Scan of `x` along an axis, and the shape of its state."""
    row = [extent for place, extent in enumerate(ROWS.shape) if place != axis]
    step = body(
        [node("Mul", "h half", "less"), node("Add", "less xi", "h2"), node("Neg", "h2", "row")],
        {"h": (FLOAT, row), "xi": (FLOAT, row)}, {"h2": (FLOAT, row), "row": (FLOAT, row)}, half=HALF,
    )  # fmt: skip
    scan = node(
        "Scan", "zero x", "h y", body=step, num_scan_inputs=1, scan_input_axes=[axis], scan_input_directions=[directions[0]],
        scan_output_axes=[1], scan_output_directions=[directions[1]],
    )  # fmt: skip
    return scan, row


@pytest.mark.parametrize("opset", [11, 17, 21])
@pytest.mark.parametrize("trips", [1, 4])
def test_a_loop_is_its_iterations(tmp_path: Path, opset: int, trips: int) -> None:
    loop = node("Loop", "m _ h0", "h y", body=loop_of(STEP, half=HALF))
    constants = {"m": np.asarray(trips, np.int64)}
    same(model_of([loop], {"x": [5, 2, 3], "h0": [2, 3]}, ["h", "y"], constants, opset=opset), tmp_path)


def test_a_condition_on_a_counter_ends_a_loop(tmp_path: Path) -> None:
    loop = counting_loop(STEP)
    constants = {"n0": np.asarray(0, np.int64), "most": np.asarray(3, np.int64)}
    imported = same(model_of([loop], {"x": [5, 2, 3], "h0": [2, 3]}, ["h", "y"], constants), tmp_path)
    assert [each.op_type for each in imported.graph.node].count("Neg") == 3


def test_loops_and_branches_may_hold_each_other(tmp_path: Path) -> None:
    outer = loop_of(nested_step(), half=HALF, two=np.asarray(2, np.int64))
    loop = node("Loop", "m _ h0", "h y", body=outer)
    constants = {"m": np.asarray(3, np.int64)}
    same(model_of([loop], {"x": [5, 2, 3], "h0": [2, 3]}, ["h", "y"], constants), tmp_path)


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_scan_is_its_iterations(tmp_path: Path, opset: int, axis: int, directions: tuple[int, int]) -> None:
    scan, row = scan_along(axis, directions)
    constants = {"zero": np.ones(row, np.float32)}
    same(model_of([scan], {"x": list(ROWS.shape)}, ["h", "y"], constants, opset=opset), tmp_path)


@pytest.mark.parametrize(
    ("nodes", "condition", "trips", "said"),
    [
        (
            [node("ReduceSum", "h2", "s", keepdims=0), node("Less", "s half", "go")],
            "go",
            1 << 62,
            "depends on the data",
        ),
        ([], "on", 1 << 62, "more than 20000 nodes"),
    ],
)
def test_loops_not_covered_are_refused(
    tmp_path: Path, nodes: list[onnx.NodeProto], condition: str, trips: int, said: str
) -> None:
    loop = node("Loop", "m _ h0", "h y", body=loop_of([*STEP, *nodes], condition, half=HALF))
    model = model_of([loop], {"x": [5, 2, 3], "h0": [2, 3]}, ["h", "y"], {"m": np.asarray(trips, np.int64)})
    with pytest.raises(ModelError, match=said):
        import_model(save(model, tmp_path))


@pytest.mark.parametrize("trips", [0, -3])
def test_a_loop_of_no_iteration_returns_its_states_and_no_rows(tmp_path: Path, trips: int) -> None:
    loop = node("Loop", "m _ h0", "h y", body=loop_of(STEP, half=HALF))
    same(model_of([loop], {"x": [5, 2, 3], "h0": [2, 3]}, ["h", "y"], {"m": np.asarray(trips, np.int64)}), tmp_path)


def test_a_loop_may_have_a_trip_count_and_nothing_else(tmp_path: Path) -> None:
    inner = body(
        [node("Gather", "x i", "row", axis=0)], {"i": (INT, []), "on": (BOOL, [])}, {"on": (BOOL, []), "row": (FLOAT, [2, 3])},
    )  # fmt: skip
    same(
        model_of([node("Loop", "m _", "y", body=inner)], {"x": [5, 2, 3]}, ["y"], {"m": np.asarray(2, np.int64)}),
        tmp_path,
    )


@pytest.mark.parametrize("axis", [-1, -3])
def test_a_scan_may_count_the_axes_of_its_results_from_the_end(tmp_path: Path, axis: int) -> None:
    scan, row = scan_along(0, (0, 0))
    scan.attribute.extend(
        [helper.make_attribute("scan_output_axes", [axis])]
        if not any(a.name == "scan_output_axes" for a in scan.attribute)
        else []
    )
    for attribute in scan.attribute:
        if attribute.name == "scan_output_axes":
            attribute.ints[:] = [axis]
    same(model_of([scan], {"x": list(ROWS.shape)}, ["h", "y"], {"zero": np.ones(row, np.float32)}), tmp_path)


def test_a_selection_before_there_was_one_is_made_in_a_newer_set(tmp_path: Path) -> None:
    branches = {
        f"{word}_branch": body([node(op, "x", word)], {}, {word: (FLOAT, [2])})
        for word, op in (("then", "Relu"), ("else", "Neg"))
    }
    model = model_of(
        [node("If", "c", "y", name="choice", **branches)], {"x": [2], "c": [1]}, ["y"], dtypes={"c": BOOL}, opset=7
    )
    imported = import_model(save(model, tmp_path))
    for chosen in (True, False):
        given = {"x": np.float32([-1, 2]), "c": np.array([chosen])}
        np.testing.assert_array_equal(run(imported, given), run(model, given))


def test_a_scan_of_a_batch_is_refused_by_its_set(tmp_path: Path) -> None:
    step = body(
        [node("Add", "h x", "h2"), node("Neg", "h2", "row")],
        {"h": (FLOAT, [2]), "x": (FLOAT, [2])}, {"h2": (FLOAT, [2]), "row": (FLOAT, [2])},
    )  # fmt: skip
    scan = node("Scan", "_ h0 xs", "h y", name="steps", body=step, num_scan_inputs=1)
    model = model_of([scan], {"h0": [1, 2], "xs": [1, 3, 2]}, ["h", "y"], opset=8)
    with pytest.raises(
        ModelError, match="Scan node 'steps' of operator set 8 cannot be compiled: it runs through each"
    ):
        import_model(save(model, tmp_path))
