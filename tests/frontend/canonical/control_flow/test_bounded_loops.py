"""Check loops whose condition the data decide, and which have a limit, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from passfit.backend import Backend
from passfit.errors import ModelError

from ....models import model_of, run
from ....profiles import examples
from ..lengths.checking import check, imported

node, value = helper.make_node, helper.make_tensor_value_info
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def decoder(limit: int | None, *, starts: str = "", outputs: Sequence[str] = ("rows", "h", "far")) -> onnx.ModelProto:
    """Build steps of a table from place to place until a sum is reached: the place runs past the table at the end."""
    body = [
        node("Gather", ["table", "place"], ["row"], axis=0),
        node("Add", ["state", "row"], ["next"]),
        node("ReduceSum", ["next"], ["sum"], keepdims=0),
        node("Less", ["sum", "x"], ["more"]),
        node("Add", ["place", "one"], ["beyond"]),
        node("Greater", ["sum", "zero"], ["positive"]),
        node("Or", ["positive", "was"], ["ever"]),
        node("Mul", ["next", "two"], ["y"]),
        node("Cast", ["number"], ["step"], to=FLOAT),
    ]
    graph = helper.make_graph(
        body, "body",
        [value("number", INT64, []), value("going", BOOL, []), value("state", FLOAT, [2]), value("place", INT64, []), value("was", BOOL, [])],
        [value("more", BOOL, []), value("next", FLOAT, [2]), value("beyond", INT64, []), value("ever", BOOL, []), value("y", FLOAT, [2]), value("step", FLOAT, [])],
    )  # fmt: skip
    results = ["h", "end", "far", "rows", "steps"]
    loop = node(
        "Loop",
        ["limit" if limit is not None else "", starts or "always", "start", "first", "never"],
        results,
        body=graph,
        name="decode",
    )
    constants = {
        "always": np.array(True), "never": np.array(False), "table": np.full((limit or 1, 2), 0.5, np.float32), "first": np.array(0),
        "one": np.array(1), "two": np.float32(2), "zero": np.float32(0),
    }  # fmt: skip
    if limit is not None:
        constants["limit"] = np.array(limit)
    inputs = {"x": [], "start": [2]} | ({starts: []} if starts else {})
    kinds = {starts: BOOL, "far": BOOL, "end": INT64}
    return model_of([loop], inputs, outputs, constants, dtypes=kinds)


def cases(limit: int) -> list[dict[str, np.ndarray]]:
    start = np.array([0.25, -0.5], np.float32)
    return [{"x": np.array(most, np.float32), "start": start} for most in (-1, 0.5, 2.5, limit - 1, 99)]


@settings(max_examples=examples(12))
@given(st.integers(2, 40), st.integers(1, 40))
def test_a_loop_stops_where_onnx_runtime_does(limit: int, bound: int) -> None:
    check(
        decoder(limit, outputs=("rows", "steps", "h", "far", "end")),
        cases(limit),
        bounds={"rows": bound, "steps": bound},
    )


@pytest.mark.parametrize("limit", [2, 30])
def test_a_library_stops_where_onnx_runtime_does(limit: int) -> None:
    model = decoder(limit)
    library = Backend.prepare(model)
    for inputs in cases(limit):
        for found, expected in zip(library.run(inputs), run(model, inputs), strict=True):
            assert found.shape == expected.shape and np.array_equal(found, expected)


def test_the_data_may_decide_that_it_does_not_start() -> None:
    given = [{**each, "starts": np.array(starts)} for each in cases(6) for starts in (False, True)]
    check(decoder(6, starts="starts"), given)


def picker(limit: int, condition: str, row: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """Build steps that return a row of x each, until a sum is reached."""
    body = [*row, node("Add", ["state", "one"], ["next"]), node("Less", ["next", "most"], ["more"])]
    graph = helper.make_graph(
        body, "body", [value("i", INT64, []), value("going", BOOL, []), value("state", FLOAT, [])],
        [value("more", BOOL, []), value("next", FLOAT, []), value("row", FLOAT, None if limit > 0 else [2])],
    )  # fmt: skip
    loop = node("Loop", ["limit", condition, "start"], ["h", "rows"], body=graph, name="pick")
    constants = {
        "limit": np.array(limit), "always": np.array(True), "one": np.float32(1), "first": np.array([0]), "next_one": np.array([1])
    }  # fmt: skip
    if not condition:
        del constants["always"]
    return model_of([loop], {"x": [5, 2], "start": [], "most": []}, ["h", "rows"], constants)


GATHER = (node("Gather", ["x", "i"], ["row"], axis=0),)
SLICE = (
    node("Unsqueeze", ["i", "first"], ["begin"]),
    node("Add", ["begin", "next_one"], ["end"]),
    node("Slice", ["x", "begin", "end", "first"], ["row"]),
)
PICKS = [
    {
        "x": np.arange(10, dtype=np.float32).reshape(5, 2),
        "start": np.asarray(0, np.float32),
        "most": np.asarray(most, np.float32),
    }
    for most in (-1, 2.5, 9)
]


@pytest.mark.parametrize("condition", ["", "always"])
@pytest.mark.parametrize("row", [GATHER, SLICE], ids=["gather", "slice"])
def test_rows_by_number_are_returned_as_they_are(row: Sequence[onnx.NodeProto], condition: str) -> None:
    check(picker(5, condition, row), PICKS)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_no_iteration_leaves_the_state(limit: int) -> None:
    model = picker(limit, "always", GATHER)
    del model.graph.output[1]
    check(model, PICKS)


def test_a_limit_that_is_too_high_is_said() -> None:
    with pytest.raises(ModelError, match="depends on the data, and its limit is 100000.*a limit of at most 65536"):
        imported(picker(100_000, "always", GATHER))


def test_one_without_a_limit_is_refused() -> None:
    with pytest.raises(ModelError, match="'decode' cannot be unrolled: its number of iterations depends on the data"):
        imported(decoder(None))


def test_one_whose_state_grows_is_refused() -> None:
    body = helper.make_graph(
        [node("Concat", ["state", "x"], ["next"], axis=0), node("ReduceSum", ["next"], ["sum"], keepdims=0), node("Less", ["sum", "most"], ["more"])],
        "body", [value("i", INT64, []), value("going", BOOL, []), value("state", FLOAT, None)], [value("more", BOOL, []), value("next", FLOAT, None)],
    )  # fmt: skip
    loop = node("Loop", ["limit", "always", "x"], ["y"], body=body, name="grow")
    model = model_of([loop], {"x": [1]}, ["y"], {"limit": np.array(5), "always": np.array(True), "most": np.float32(3)})
    with pytest.raises(ModelError, match="'grow' cannot be unrolled: its number of iterations depends on the data"):
        imported(model)


def counted(form: str) -> onnx.ModelProto:
    """Build `while place < 9 and total < x` as torch.jit.script leaves it, or the other way round, without a limit of the Loop."""
    less = node("Less", ["beyond", "nine"], ["within"])
    more = node("Less", ["next", "x"], ["more"])
    body = [node("Add", ["place", "one"], ["beyond"]), node("Add", ["total", "step"], ["next"])]
    if form == "and":
        body += [less, more, node("And", ["within", "more"], ["goes"])]
    else:
        first, second = (less, more) if form == "counter first" else (more, less)
        stop = [
            node("Constant", [], ["stop"], value=helper.make_tensor("v", BOOL, [], [False])),
            node("Identity", ["stop"], ["never"]),
        ]
        branches = {
            "then_branch": helper.make_graph([second], "then", [], [value(second.output[0], BOOL, [])]),
            "else_branch": helper.make_graph(stop, "else", [], [value("never", BOOL, [])]),
        }
        body += [
            first,
            node("Cast", [first.output[0]], ["holds"], to=BOOL),
            node("If", ["holds"], ["goes"], **branches),
        ]
    graph = helper.make_graph(
        body, "body",
        [value("number", INT64, []), value("going", BOOL, []), value("place", INT64, []), value("total", FLOAT, [])],
        [value("goes", BOOL, []), value("beyond", INT64, []), value("next", FLOAT, []), value("next", FLOAT, [])],
    )  # fmt: skip
    loop = node("Loop", ["endless", "always", "first", "start"], ["places", "h", "rows"], body=graph, name="decode")
    constants = {
        "endless": np.array(2**63 - 1), "always": np.array(True), "first": np.array(2), "one": np.array(1), "nine": np.array(9),
        "step": np.float32(1),
    }  # fmt: skip
    return model_of([loop], {"x": [], "start": []}, ("rows", "h"), constants)


@pytest.mark.parametrize("form", ["and", "counter first", "counter second"])
def test_a_counter_in_the_condition_is_a_limit(form: str) -> None:
    model, start = counted(form), np.array(0, np.float32)
    assert imported(model).graph.output[0].type.tensor_type.shape.dim[0].dim_value == 7
    library = Backend.prepare(model)
    for x in (-1, 2.5, 99):
        inputs = {"x": np.array(x, np.float32), "start": start}
        for found, expected in zip(library.run(inputs), run(model, inputs), strict=True):
            np.testing.assert_array_equal(found, expected)
