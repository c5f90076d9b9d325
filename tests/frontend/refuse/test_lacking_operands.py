"""Refuse nodes that lack an operand, in the words of their operator."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of, save

LEAF = {
    "leaf_targetids": [0], "leaf_weights": numpy_helper.from_array(np.ones(1, np.float32)), "nodes_falseleafs": [1],
    "nodes_falsenodeids": [0], "nodes_featureids": [0], "nodes_modes": numpy_helper.from_array(np.zeros(1, np.uint8)),
    "nodes_splits": numpy_helper.from_array(np.zeros(1, np.float32)), "nodes_trueleafs": [1], "nodes_truenodeids": [0],
    "tree_roots": [0],
}  # fmt: skip
#: node, and the operand it lacks; ONNX's inference ends the process at the first
NODES = [
    (helper.make_node("TreeEnsemble", [""], ["y"], "t", domain="ai.onnx.ml", **LEAF), "X"),
    (helper.make_node("Scaler", [], ["y"], "s", domain="ai.onnx.ml", scale=[1.0], offset=[0.0]), "X"),
    (helper.make_node("MatMul", ["x"], ["y"], "m"), "B"),
    (helper.make_node("Clip", ["", "x"], ["y"], "c"), "input"),
]


@pytest.mark.parametrize(("node", "operand"), NODES)
@pytest.mark.parametrize("where", ["graph", "function", "call"])
def test_a_node_that_lacks_an_operand_is_refused(tmp_path: Path, node, operand: str, where: str) -> None:
    """Lack it in the graph, or in a function, or as what the call of a call leaves out."""
    sets = [helper.make_opsetid(*each) for each in (("", 18), ("ai.onnx.ml", 5), ("own", 1))]
    inner = deepcopy(node)
    if where == "call":
        inner.input[:] = [name or "b" for name in node.input] if "" in node.input else [*node.input, "b"]
    outer = helper.make_node("Inner", ["x", "a"], ["y"], domain="own")
    model = model_of(
        [node if where == "graph" else helper.make_node("Outer", ["x"], ["y"], domain="own")], {"x": [2, 2]}, ["y"]
    )
    del model.opset_import[:]
    model.opset_import.extend(sets)
    if where != "graph":
        model.functions.append(helper.make_function("own", "Inner", ["x", "b"], ["y"], [inner], sets))
        model.functions.append(helper.make_function("own", "Outer", ["x", "a"], ["y"], [outer], sets))
    with pytest.raises(ModelError, match=f"The {node.op_type} node '{node.name}' lacks its operand '{operand}'"):
        import_model(save(model, tmp_path))


def test_an_operand_that_may_be_left_out_may_lack(tmp_path: Path) -> None:
    top = numpy_helper.from_array(np.float32(1.0), "top")
    model = model_of([helper.make_node("Clip", ["x", "", "top"], ["y"])], {"x": [2, 2]}, ["y"], [top])
    assert import_model(save(model, tmp_path)).graph.output


@pytest.mark.parametrize("version", [-(1 << 40), 1 << 40])
def test_a_set_of_estimators_that_cannot_exist_ends_nothing(tmp_path: Path, version: int) -> None:
    scaler = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", scale=[1.0], offset=[0.0])
    model = model_of([scaler], {"x": [2, 2]}, ["y"], domain="ai.onnx.ml")
    model.opset_import[1].version = version
    assert import_model(save(model, tmp_path)).graph.output
