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
