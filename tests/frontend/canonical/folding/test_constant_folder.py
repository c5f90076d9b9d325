"""Constants are what the operator set of the file says, not what ONNX's evaluator in Python computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonical.folding.evaluate import evaluate
from passfit.frontend.canonicalise import import_model

from ....models import model_of, run, save

node = helper.make_node
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


BATCH = {"s": floats(3), "b": floats(3), "m": floats(3), "v": abs(floats(3))}
#: the nodes that make `c` of constants, the constants, the operator set
CASES = {
    "Softmax of set 11": ([node("Softmax", ["k"], ["c"])], {"k": floats(2, 3, 4)}, 11),
    "LogSoftmax of set 11": ([node("LogSoftmax", ["k"], ["c"])], {"k": floats(2, 3, 4)}, 11),
    "Hardmax of set 11": ([node("Hardmax", ["k"], ["c"])], {"k": floats(2, 3, 4)}, 11),
    "LRN": ([node("LRN", ["k"], ["c"], size=3, alpha=0.3)], {"k": floats(1, 5, 2, 2)}, 13),
    "LpNormalization": ([node("LpNormalization", ["k"], ["c"], p=1)], {"k": floats(3, 4)}, 17),
    "BatchNormalization": ([node("BatchNormalization", ["k", *"sbmv"], ["c"])], {"k": floats(1, 3, 2, 2), **BATCH}, 9),
    "Resize in three dimensions": (
        [node("Resize", ["k", "", "f"], ["c"], mode="linear")], {"k": floats(2, 3, 4), "f": np.float32([2, 1.5, 0.5])}, 18,
    ),
    "nearest Resize of set 10": ([node("Resize", ["k", "f"], ["c"])], {"k": floats(1, 1, 5, 6), "f": np.float32([1, 1, 0.6, 1.7])}, 10),
    "cubic GridSample at borders": (
        [node("GridSample", ["k", "g"], ["c"], mode="cubic", padding_mode="border")],
        {"k": floats(1, 1, 4, 4), "g": RNG.uniform(-1.5, 1.5, (1, 3, 3, 2)).astype(np.float32)}, 20,
    ),
    "IsInf without signs": (
        [node("IsInf", ["k"], ["i"], detect_negative=0, detect_positive=0), node("Cast", ["i"], ["c"], to=1)],
        {"k": np.float32([1, np.inf, -np.inf])}, 13,
    ),
    "quotients of negative integers": ([node("Div", ["k", "l"], ["i"]), node("Cast", ["i"], ["c"], to=1)], {"k": np.asarray([-7, 7, -8]), "l": np.asarray(2)}, 13),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_constant_is_computed_by_the_rules_of_its_operator_set(tmp_path: Path, name: str) -> None:
    nodes, constants, opset = CASES[name]
    model = model_of([*nodes, node("Add", ["x", "c"], ["y"])], {"x": [1]}, ["y"], constants, opset=opset)
    imported = import_model(save(model, tmp_path))
    assert [each.op_type for each in imported.graph.node] == ["Add"]
    x = {"x": np.zeros(1, np.float32)}
    np.testing.assert_array_equal(run(imported, x)[0], run(model, x)[0])


def test_what_is_random_is_no_constant(tmp_path: Path) -> None:
    drop = node("Dropout", ["k", "r", "t"], ["c"])
    constants = {"k": floats(40), "r": np.float32(0.5), "t": np.asarray(True)}
    model = model_of([drop, node("Add", ["x", "c"], ["y"])], {"x": [40]}, ["y"], constants, opset=13)
    with pytest.raises(ModelError, match="in training mode"):
        import_model(save(model, tmp_path))


def test_a_constant_that_no_implementation_has_is_left_as_a_node(tmp_path: Path) -> None:
    nodes = [node("Div", ["k", "l"], ["i"]), node("Cast", ["i"], ["c"], to=1), node("Add", ["x", "c"], ["y"])]
    model = model_of(nodes, {"x": [1]}, ["y"], {"k": np.asarray([1, 2]), "l": np.asarray(0)})
    assert "Div" in {each.op_type for each in import_model(save(model, tmp_path)).graph.node}


@pytest.mark.parametrize("op, opset", [("Shape", 7), ("Size", 7), ("Shape", 11), ("Size", 13)])
def test_the_shape_of_a_constant_is_a_constant_in_every_set(tmp_path: Path, op: str, opset: int) -> None:
    constant = numpy_helper.from_array(floats(3, 4), "k")
    graph = helper.make_graph(
        [node(op, ["k"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 7, None)], [constant]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    np.testing.assert_array_equal(run(import_model(save(model, tmp_path)), {})[0], run(model, {})[0])


def test_strings_that_are_constants_fold(tmp_path: Path) -> None:
    nodes = [
        node("StringConcat", ["k", "l"], ["j"]), node("Gather", ["j", "i"], ["m"]), node("Equal", ["m", "n"], ["e"]), node("Size", ["none"], ["s"]),
        node("Cast", ["s"], ["c"], to=1), node("Add", ["x", "c"], ["a"]), node("Where", ["e", "x", "a"], ["y"]),
    ]  # fmt: skip
    texts = {"k": [b"a", b"b"], "l": [b"c", b"d"], "n": [b"bd", b"b"], "none": []}
    constants = [helper.make_tensor(name, onnx.TensorProto.STRING, [len(each)], each) for name, each in texts.items()]
    constants.append(numpy_helper.from_array(np.asarray([1, 0]), "i"))
    model = model_of(nodes, {"x": [2]}, ["y"], constants, opset=20)
    x = {"x": np.float32([1, 2])}
    np.testing.assert_array_equal(run(import_model(save(model, tmp_path)), x)[0], run(model, x)[0])


@pytest.mark.parametrize(
    ("made", "constants"),
    [
        (node("Div", ["a", "b"], ["y"]), {"a": np.asarray([1]), "b": np.asarray([0])}),
        (
            node("Mod", ["a", "b"], ["y"]),
            {"a": np.asarray([np.iinfo(np.int32).min], np.int32), "b": np.asarray([-1], np.int32)},
        ),
        (node("Gather", ["a", "b"], ["y"]), {"a": np.asarray([1.0]), "b": np.asarray([5])}),
        (node("NoSuchOperator", ["a"], ["y"]), {"a": np.asarray([1.0])}),
        (node("SequenceEmpty", [], ["y"]), {}),
    ],
    ids=lambda each: each.op_type if isinstance(each, onnx.NodeProto) else "",
)
def test_what_cannot_be_computed_has_a_reason(made: onnx.NodeProto, constants: dict[str, np.ndarray]) -> None:
    reason = evaluate(made, [numpy_helper.from_array(value, name) for name, value in constants.items()], 13)
    assert isinstance(reason, str) and reason


@pytest.mark.parametrize("name", ["FLOAT8E4M3FN", "FLOAT8E5M2", "BFLOAT16"])
def test_numbers_of_a_dtype_that_numpy_lacks_are_not_taken_for_bytes(name: str, tmp_path: Path) -> None:
    narrow = onnx.TensorProto.DataType.Value(name)
    nodes = [node("Cast", ["k"], ["n"], to=narrow), node("Cast", ["n"], ["c"], to=1), node("Add", ["x", "c"], ["y"])]
    model = model_of(nodes, {"x": [2, 3]}, ["y"], {"k": floats(2, 3)}, opset=21)
    x = {"x": floats(2, 3)}
    np.testing.assert_array_equal(run(import_model(save(model, tmp_path)), x)[0], run(model, x)[0])
