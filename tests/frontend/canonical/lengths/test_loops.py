"""Check loops that run as often as a length says, against ONNX Runtime; or refused."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.backend import Backend
from passfit.errors import ModelError

from ....models import NodeBuilder, run
from .checking import check, imported
from .test_readers import ROWS, cases, ints, rows, size

node, value = helper.make_node, helper.make_tensor_value_info
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def walk(change: str = "", scale: int = 1, fill: int = 0) -> onnx.ModelProto:
    """Build a loop over the rows of open length: a running sum, its rows, and a number of each iteration.

    `change` is empty, `sooner` (a condition ends it), `all` (a body that reads all rows), `beyond` (one that reads rows by any number), or `grows` (a state does); the loop
    has `fill` more operators in its body.
    """
    b = NodeBuilder()
    v = rows(b)
    count = size(b, v)
    if scale > 1:
        count = b.node("Mul", count, b.constant(np.array(scale)))
    body = [
        node("Unsqueeze", ["number", "zeroth"], ["place"]),
        node("Gather", [v, "place"], ["row"], axis=0) if scale == 1 or change == "beyond" else node("Slice", ["table", "zeroth", "one", "zeroth"], ["row"]),
        node("Squeeze", ["row", "zeroth"], ["flat"]),
        node("Add", ["state", "flat"], ["sum"]),
        *(node("Sin", [f"s{n - 1}" if n else "flat"], [f"s{n}"]) for n in range(fill)),
        node("ReduceMax", [v if change == "all" else "flat"], ["largest"], keepdims=0),
        node("Add", ["sum", f"s{fill - 1}" if fill else "largest"], ["next"]),
        node("ReduceSum", ["next"], ["total"], keepdims=0),
        node("Less", ["total", "most"], ["more"]),
        node("Or", ["going", "more"], ["whole"]),
    ]  # fmt: skip
    last = "grown" if change == "grows" else "next"
    if change == "grows":
        body.append(node("Concat", ["next", "flat"], ["grown"], axis=0))
    graph = helper.make_graph(
        body, "body", [value("number", INT64, []), value("going", BOOL, []), value("state", FLOAT, [4])],
        [value("more" if change == "sooner" else "going", BOOL, []), value(last, FLOAT, None if change == "grows" else [4]),
         value("next", FLOAT, [4]), value("number", INT64, [])],
    )  # fmt: skip
    graph.output[2].name = "out"
    graph.output[3].name = "step"
    graph.node.append(node("Neg", ["next"], ["out"]))
    graph.node.append(node("Identity", ["number"], ["step"]))
    b.constants |= {
        "always": np.array(True), "start": np.zeros(4, np.float32), "most": np.float32(4), "zeroth": np.array([0]), "one": np.array([1]),
        "table": np.full((3, 4), 0.5, np.float32),
    }  # fmt: skip
    b.nodes.append(node("Loop", [count, "always", "start"], ["end", "outs", "steps"], name="walk", body=graph))
    joined = "outs" if change == "sooner" or scale > 1 else b.node("Add", "outs", v)
    return b.model([ROWS, 4], "end", joined, "steps", dtypes={"steps": INT64})


@pytest.mark.parametrize("fill", [0, 40])
@pytest.mark.parametrize(("change", "scale"), [("", 1), ("sooner", 1), ("", 2)])
def test_a_loop_runs_as_often_as_a_length_says(change: str, scale: int, fill: int) -> None:
    canonical = check(walk(change, scale, fill), cases(), rtol=1e-5)
    if scale == 1:
        assert ("Scan" in {each.op_type for each in canonical.graph.node}) == (fill > 0)


def test_a_library_runs_it_as_often() -> None:
    model = walk(fill=40)
    library = Backend.prepare(model)
    for inputs in cases():
        for found, expected in zip(library.run(inputs), run(model, inputs), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "scale", "why"),
    [
        ("all", 1, "takes more of"),
        ("beyond", 2, "more rows than there are"),
        ("grows", 1, "its states change their shapes"),
    ],
)
def test_a_refusal_says_what_its_body_does(change: str, scale: int, why: str) -> None:
    with pytest.raises(ModelError, match=re.escape(why)):
        imported(walk(change, scale))


def test_a_number_of_iterations_that_is_no_length_is_refused_as_before() -> None:
    b = NodeBuilder()
    graph = helper.make_graph(
        [node("Relu", ["state"], ["next"])], "body",
        [value("number", INT64, []), value("going", BOOL, []), value("state", FLOAT, [4])],
        [value("going", BOOL, []), value("next", FLOAT, [4])],
    )  # fmt: skip
    many = b.node("Cast", b.node("ReduceSum", "x", ints(b, 0, 1), keepdims=0), to=INT64)
    b.constants |= {"always": np.array(True), "start": np.zeros(4, np.float32)}
    b.nodes.append(node("Loop", [many, "always", "start"], ["end"], name="walk", body=graph))
    with pytest.raises(ModelError, match="its number of iterations depends on the data"):
        imported(b.model([ROWS, 4], "end"))
