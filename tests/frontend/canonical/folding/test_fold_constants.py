"""Folding leaves nothing to fold, and repeats no work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from passfit.frontend import canonicalise
from passfit.frontend.canonical.folding import constant_folder, fold_constants
from passfit.frontend.canonical.folding.fold_constants import fold, refold, sort_nodes
from passfit.frontend.canonical.shapes import infer_shapes

from ....models import model_of, save

node = helper.make_node
W = {"w": np.ones((3, 3), np.float32)}
LAYERS = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["a", "b"], ["y"])]


def branching() -> onnx.ModelProto:
    """Return a model whose `If` nobody reads, and `a`, which only a branch reads."""
    then, other = (
        helper.make_graph(
            [node(op, ["a"], ["r"])], op, [], [helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [2, 3])]
        )
        for op in ("Neg", "Exp")
    )
    nodes = [
        node("MatMul", ["x", "w"], ["a"]),
        node("ReduceMax", ["a"], ["m"], keepdims=0),
        node("Cast", ["m"], ["c"], to=onnx.TensorProto.BOOL),
        node("If", ["c"], ["unread"], then_branch=then, else_branch=other),
        node("Relu", ["x"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 3]}, ["y"], W)


def operators(model: onnx.ModelProto) -> list[str]:
    return [each.op_type for each in model.graph.node]


def test_what_only_a_removed_branch_reads_is_removed() -> None:
    assert operators(fold(infer_shapes(branching()))) == ["Relu"]


def test_nodes_in_order_are_left_alone() -> None:
    model = model_of(LAYERS, {"x": [2, 3]}, ["y"], W)
    assert sort_nodes(model) is model
    unsorted = model_of(LAYERS[::-1], {"x": [2, 3]}, ["y"], W)
    assert operators(sort_nodes(unsorted)) == operators(model)
    assert sort_nodes(branching()).graph.node[3].op_type == "If"


def test_a_model_that_did_not_change_is_not_folded_again() -> None:
    model = fold(infer_shapes(model_of(LAYERS, {"x": [2, 3]}, ["y"], W)))
    assert refold(model, model) is model
    assert operators(refold(branching(), model)) == ["Relu"]


def test_types_that_are_known_are_not_inferred_node_by_node(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inferred = infer_shapes(model_of(LAYERS, {"x": [2, 3]}, ["y"], W)), list[str]()
    base = constant_folder.FoldConstantsPass
    monkeypatch.setattr(base, "_do_inference", lambda self, each: inferred.append(each.op_type))
    fold(model)
    assert not inferred
    del model.graph.value_info[:]
    fold(model)
    assert inferred == ["MatMul", "Relu"]


def test_a_network_without_odd_forms_is_folded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folded = list[int]()

    def count(model: onnx.ModelProto) -> onnx.ModelProto:
        folded.append(len(model.graph.node))
        return fold(model)

    for module in (canonicalise, fold_constants):
        monkeypatch.setattr(module, "fold", count)
    canonicalise.import_model(save(model_of(LAYERS, {"x": [2, 3]}, ["y"], W), tmp_path))
    assert folded == [3]


def test_nodes_of_several_results_are_folded() -> None:
    """TensorFlow's mirrored padding and sums of segments are masks and rows of such results: the data decide nothing."""
    nodes = [
        node("Unique", ["rows"], ["u", "", "back"], axis=0),
        node("Shape", ["x"], ["sizes"]),
        node("Split", ["sizes"], ["height", "width"], axis=0),
        node("ConstantOfShape", ["width"], ["zeros"]),
        node("Gather", ["u", "back"], ["again"]),
        node("Cast", ["again"], ["floats"], to=onnx.TensorProto.FLOAT),
        node("Add", ["floats", "zeros"], ["row"]),
        node("Add", ["x", "row"], ["y"]),
    ]
    given = model_of(nodes, {"x": [2, 3]}, ["y"], {"rows": np.array([7, 2, 7])})
    folded = fold(infer_shapes(given))
    assert operators(folded) == ["Add"]
    (row,) = folded.graph.initializer
    assert onnx.numpy_helper.to_array(row).tolist() == [7, 2, 7]
