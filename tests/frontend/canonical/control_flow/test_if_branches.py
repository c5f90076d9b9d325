"""Branches of an If that may fail: only the one taken does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passfit.backend.built import LoadedLibrary, build
from passfit.errors import ModelError, NumericError
from passfit.frontend.canonicalise import canonicalize
from passfit.targets.native import native_target

from ....models import model_of, run, shape_of
from ..lengths.checking import check

native = pytest.mark.skipif(native_target() is None, reason="no target of the catalogue runs natively on this machine")
INT = TensorProto.INT64


def graph(nodes: list[onnx.NodeProto], result: str, name: str = "g") -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(result, INT, [])])


def branch(condition: str, then: onnx.GraphProto, other: onnx.GraphProto, result: str) -> onnx.NodeProto:
    return helper.make_node("If", [condition], [result], name=result, then_branch=then, else_branch=other)


def lookup(op: str, operands: list[str], result: str) -> onnx.GraphProto:
    return graph([helper.make_node(op, operands, [result], name=f"n{result}")], result)


def nothing(result: str) -> onnx.GraphProto:
    return lookup("Identity", ["none"], result)


def summed() -> onnx.NodeProto:
    """Sum what three trips of a Loop read, each at the next position, as far as there is one."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["n", "i"], ["at"]),
            helper.make_node("Less", ["at", "four"], ["is_there"]),
            branch("is_there", lookup("Gather", ["table", "at"], "read_d"), nothing("none_e"), "read"),
            helper.make_node("Add", ["state", "read"], ["next"]),
            helper.make_node("Identity", ["go"], ["goes"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("n", INT, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", INT, []),
        ],
        [helper.make_tensor_value_info("goes", TensorProto.BOOL, []), helper.make_tensor_value_info("next", INT, [])],
    )
    return helper.make_node("Loop", ["three", "", "none"], ["y_loop"], name="loop", body=body)


NODES = [
    helper.make_node("Less", ["i", "four"], ["inside"]),
    helper.make_node("Equal", ["i", "zero"], ["is_zero"]),
    helper.make_node("Greater", ["i", "two"], ["far"]),
    branch("inside", lookup("Gather", ["table", "i"], "read_a"), nothing("none_a"), "y_then"),
    branch("is_zero", nothing("none_b"), lookup("Div", ["ten", "i"], "div_b"), "y_else"),
    # outside, the inner condition says yes
    branch(
        "inside",
        graph([branch("far", lookup("Gather", ["table", "i"], "read_c"), nothing("none_c"), "inner")], "inner"),
        nothing("none_d"),
        "y_nested",
    ),
    # the position and the inner condition are made in the branch
    branch(
        "inside",
        graph(
            [
                helper.make_node("Add", ["i", "two"], ["on"]),
                helper.make_node("Less", ["on", "four"], ["is_on"]),
                branch("is_on", lookup("Gather", ["table", "on"], "read_f"), nothing("none_f"), "deep"),
            ],
            "deep",
        ),
        nothing("none_g"),
        "y_deep",
    ),
    summed(),
]
RESULTS = ("y_then", "y_else", "y_nested", "y_deep", "y_loop")
CONSTANTS = {
    "table": np.asarray([3, 1, 4, 1]), "zero": np.int64(0), "two": np.int64(2), "three": np.int64(3), "four": np.int64(4),
    "ten": np.int64(10), "none": np.int64(-7),
}  # fmt: skip


def model(results: tuple[str, ...]) -> onnx.ModelProto:
    used = [node for node in NODES if node.op_type != "If" or node.output[0] in results]
    return model_of(used, {"i": ()}, {name: () for name in results}, CONSTANTS, dtype=INT)


@native
@pytest.mark.slow
def test_a_branch_that_may_fail_runs_only_if_taken(tmp_path: Path) -> None:
    whole = model(RESULTS)
    library = LoadedLibrary(build(whole, {}, {}, tmp_path, ["legalize", "fold-constant", "fuse-operators"]))
    for i in (0, 1, 3, 4, 1 << 40):
        given = {"i": np.asarray(i)}
        assert [int(value) for value in library.run(given).values()] == [int(value) for value in run(whole, given)]


@native
@pytest.mark.slow
def test_the_branch_taken_fails_still(tmp_path: Path) -> None:
    library = LoadedLibrary(
        build(model(("y_then",)), {}, {}, tmp_path, ["legalize", "fold-constant", "fuse-operators"])
    )
    with pytest.raises(NumericError, match="an index is out of range"):
        library.run({"i": np.asarray(-9)})


def test_positions_that_are_constant_are_left_alone() -> None:
    fixed = branch("inside", lookup("Gather", ["table", "two"], "read"), nothing("none_a"), "y")
    shifted = branch("inside", lookup("Add", ["i", "two"], "more"), nothing("none_b"), "z")
    found = canonicalize(model_of([NODES[0], fixed, shifted], {"i": ()}, {"y": (), "z": ()}, CONSTANTS, dtype=INT))
    assert sum(node.op_type == "Where" for node in found.graph.node) == 2  # one for each If


def chosen(then: tuple[int, ...], other: tuple[int, ...], result: tuple[int | None, ...]) -> onnx.ModelProto:
    """Return a model that gives a constant of one shape where its input is positive, and else one of another shape."""
    random = np.random.default_rng(0)
    constants = {"one": random.integers(0, 9, then), "two": random.integers(0, 9, other), "nothing": np.int64(0)}
    bodies = {
        name: helper.make_graph(
            [helper.make_node("Identity", [constant], [f"{name}_y"])], name, [], [helper.make_tensor_value_info(f"{name}_y", INT, shape)]
        )
        for name, constant, shape in (("then_branch", "one", then), ("else_branch", "two", other))
    }  # fmt: skip
    nodes = [
        helper.make_node("Greater", ["i", "nothing"], ["c"]),
        helper.make_node("If", ["c"], ["y"], name="y", **bodies),
    ]
    return model_of(nodes, {"i": ()}, {"y": result}, constants, dtype=INT)


@pytest.mark.parametrize(
    ("then", "other", "axis"), [((2, 3), (5, 3), 0), ((2, 4), (2, 1), 1), ((0, 3), (4, 3), 0), ((2,), (0,), 0)]
)
def test_branches_of_different_lengths_give_the_rows_of_the_one_taken(
    then: tuple[int, ...], other: tuple[int, ...], axis: int
) -> None:
    model = chosen(then, other, tuple(None if at == axis else size for at, size in enumerate(then)))
    canonical = check(model, [{"i": np.asarray(number)} for number in (1, 0)])
    assert shape_of(canonical.graph.output[0])[axis] == then[axis] + other[axis]


def test_branches_that_differ_along_two_axes_are_refused() -> None:
    with pytest.raises(ModelError, match="The branches of If node 'y' give different shapes"):
        canonicalize(chosen((2, 3), (3, 2), (None, None)))
