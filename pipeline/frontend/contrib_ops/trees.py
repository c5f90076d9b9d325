"""Express ensembles of decision trees of `ai.onnx.ml`: all trees at once, one level at a time.

Nodes of all trees are rows of tables: feature, threshold, next node if the test holds, next node if not. A leaf is its own
next node. So a level is four lookups by node and one by feature, for each row of the input and each tree; after as many
levels as the deepest tree has, every tree is at a leaf, whose weights are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ..canonical.node_builder import NodeBuilder
from .classical import as_floats, chosen_class, class_labels, to_float, transform
from .context import Rule, Surroundings

if TYPE_CHECKING:
    import onnx

_Attributes = dict[str, Any]
#: tests of a branch, as ONNX's operators, in the order of their numbers in TreeEnsemble; BRANCH_NEQ is an Equal that swaps its ways
_TESTS = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual", "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
}  # fmt: skip
_MODES = (*_TESTS, "BRANCH_NEQ")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass(frozen=True)
class _Trees:
    """Tables by node of all trees, the roots, the depth of the deepest tree, and the operators of the tests.

    `kind` is the number of a node's test among these. `missing` tells the nodes at which NaN goes where the test holds.
    """

    feature: np.ndarray
    threshold: np.ndarray
    holds: np.ndarray
    fails: np.ndarray
    missing: np.ndarray
    kind: np.ndarray
    roots: np.ndarray
    depth: int
    tests: tuple[str, ...]


def _tables(
    modes: list[str], feature: np.ndarray, threshold: np.ndarray, holds: np.ndarray, fails: np.ndarray, missing: np.ndarray, roots: np.ndarray,
) -> _Trees | str:  # fmt: skip
    """Build the tables from those of a file, by node; `holds` and `fails` are the next nodes. Return a reason if it has no such form."""
    if unknown := sorted(set(modes) - {"LEAF", *_MODES}):
        return f"its branches are {', '.join(unknown)}"
    differs = np.asarray([mode == "BRANCH_NEQ" for mode in modes], bool)
    holds, fails, missing = np.where(differs, fails, holds), np.where(differs, holds, fails), missing & ~differs
    tests = ["BRANCH_EQ" if mode == "BRANCH_NEQ" else mode for mode in modes]
    used = sorted(set(tests) - {"LEAF"}) or ["BRANCH_LEQ"]
    kind = np.asarray([0 if test == "LEAF" else used.index(test) for test in tests], np.int32)
    leaf = np.asarray([mode == "LEAF" for mode in modes], bool)
    feature, missing = np.where(leaf, 0, feature), missing & ~leaf
    reached, depth = roots, 0
    while not leaf[reached].all():
        reached, depth = np.unique([holds[reached], fails[reached]]), depth + 1
        if depth > len(modes):
            return "its branches go round in a circle"
    return _Trees(feature, threshold, holds, fails, missing, kind, roots, depth, tuple(_TESTS[test] for test in used))


def _trees_of(attributes: _Attributes) -> tuple[_Trees | str, dict[tuple[int, int], int]]:
    """Read the tables of an ensemble, or the reason if it has no such form; and the number of a tree's node."""
    modes = list(attributes["nodes_modes"])
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"]))
    number = {key: index for index, key in enumerate(keys)}
    holds, fails = np.arange(len(keys)), np.arange(len(keys))
    for index, ((tree, _), mode) in enumerate(zip(keys, modes)):
        if mode != "LEAF":
            holds[index] = number[tree, attributes["nodes_truenodeids"][index]]
            fails[index] = number[tree, attributes["nodes_falsenodeids"][index]]
    inner = {to for side in (holds, fails) for index, to in enumerate(side) if to != index}
    roots = np.asarray([index for index in range(len(keys)) if index not in inner], np.int64)
    missing = np.asarray(attributes.get("nodes_missing_value_tracks_true") or np.zeros(len(keys)), bool)
    feature = np.asarray(attributes["nodes_featureids"], np.int64)
    return _tables(modes, feature, _numbers(attributes, "nodes_values"), holds, fails, missing, roots), number


def _numbers(attributes: _Attributes, name: str) -> np.ndarray:
    """Return an attribute of floats, or of doubles, which files keep as a tensor; empty if there is neither."""
    from onnx import numpy_helper

    if tensor := attributes.get(f"{name}_as_tensor"):
        return numpy_helper.to_array(tensor)
    return np.asarray(attributes.get(name) or (), np.float32)


def _leaves(trees: _Trees, value: str, dtype: np.dtype, build: NodeBuilder) -> str:
    """Build the descent of all trees; return the numbers of their leaves, by row of the input and tree."""
    feature, holds, fails = (
        build.constant(each.astype(np.int32)) for each in (trees.feature, trees.holds, trees.fails)
    )
    threshold, missing = build.constant(trees.threshold.astype(dtype)), build.constant(trees.missing)
    of_test = [build.constant(trees.kind == number) for number in range(len(trees.tests))]
    rows = build.node("Slice", build.node("Shape", value), build.integers(0), build.integers(1))
    shape = build.node("Concat", rows, build.integers(len(trees.roots)), axis=0)
    at = build.node("Expand", build.constant(trees.roots.astype(np.int32)[None]), shape)
    for _ in range(trees.depth):
        looked_at = build.node("GatherElements", value, build.node("Gather", feature, at), axis=1)
        limit = build.node("Gather", threshold, at)
        each = [build.node(test, looked_at, limit) for test in trees.tests]
        if len(each) > 1:
            each = [build.node("And", met, build.node("Gather", nodes, at)) for met, nodes in zip(each, of_test)]
        met = reduce(partial(build.node, "Or"), each)
        if trees.missing.any():
            met = build.node(
                "Or", met, build.node("And", build.node("IsNaN", looked_at), build.node("Gather", missing, at))
            )
        at = build.node("Where", met, build.node("Gather", holds, at), build.node("Gather", fails, at))
    return at


def _sums(
    weights: np.ndarray, trees: _Trees, value: str, dtype: np.dtype, build: NodeBuilder, base: np.ndarray = np.zeros(0), average: bool = False,
) -> str:  # fmt: skip
    """Build the sums, or averages, of the `weights` of leaves [nodes, columns], and of the `base`."""
    at_leaves = build.node("Gather", build.constant(weights.astype(dtype)), _leaves(trees, value, dtype, build))
    sums = build.node("ReduceSum", at_leaves, build.integers(1), keepdims=0)
    if average:
        sums = build.node("Div", sums, build.constant(np.asarray(len(trees.roots), dtype)))
    return build.node("Add", sums, build.constant(base.astype(dtype))) if base.size else sums


def _weights(kind: str, columns: list[int], attributes: _Attributes, number: dict[tuple[int, int], int]) -> np.ndarray:
    """Return the weights of `kind` (class, target) by node and column; `columns` are the numbers they go to."""
    found = np.zeros((len(number), len(columns)), np.float64)
    places = zip(*(attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")))
    for (tree, leaf, column), weight in zip(places, _numbers(attributes, f"{kind}_weights")):
        found[number[tree, leaf], columns.index(column)] += weight
    return found


def _regressor(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    (trees, number), how = _trees_of(attributes), attributes.get("aggregate_function", "SUM")
    if isinstance(trees, str):
        return trees
    if how not in ("SUM", "AVERAGE"):
        return f"its aggregate_function is {how}"
    weights = _weights("target", list(range(attributes.get("n_targets", 1))), attributes, number)
    value, dtype = as_floats(node.input[0], around, build)
    scores = _sums(weights, trees, value, dtype, build, _numbers(attributes, "base_values"), how == "AVERAGE")
    return transform(_float(scores, dtype, build), attributes.get("post_transform", "NONE"), node.output[0], build)


def _ensemble(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    """Build the only operator of trees since version 5, of which leaves are a table of their own."""
    from onnx import numpy_helper

    splits, values = (numpy_helper.to_array(attributes[name]).reshape(-1) for name in ("nodes_splits", "leaf_weights"))
    modes = [(*_MODES, "BRANCH_MEMBER")[mode] for mode in numpy_helper.to_array(attributes["nodes_modes"]).reshape(-1)]
    how = _AGGREGATES[attributes.get("aggregate_function", 1)]
    if attributes.get("post_transform", 0):
        return (
            "its post_transform has a number that ONNX and ONNX Runtime read differently: apply it by a node of its own"
        )
    if how not in ("SUM", "AVERAGE"):
        return f"its aggregate_function is {how}"
    count, leaves = len(modes), len(values)
    holds, fails = (
        np.asarray(attributes[f"nodes_{side}nodeids"]) + count * np.asarray(attributes[f"nodes_{side}leafs"])
        for side in ("true", "false")
    )
    own = np.arange(count, count + leaves)
    missing = np.zeros(count + leaves, bool)
    missing[:count] = attributes.get("nodes_missing_value_tracks_true") or 0
    trees = _tables(
        modes + ["LEAF"] * leaves, np.asarray([*attributes["nodes_featureids"], *[0] * leaves]), np.concatenate([splits, np.zeros_like(values)]),
        np.concatenate([holds, own]), np.concatenate([fails, own]), missing, np.asarray(attributes["tree_roots"]),
    )  # fmt: skip
    if isinstance(trees, str):
        return trees
    weights = np.zeros((count + leaves, attributes.get("n_targets", 1)))
    weights[own, attributes["leaf_targetids"]] = values
    value, dtype = as_floats(node.input[0], around, build)
    build.node("Identity", _sums(weights, trees, value, dtype, build, average=how == "AVERAGE"), result=node.output[0])
    return None


def _float(value: str, dtype: np.dtype, build: NodeBuilder) -> str:
    from onnx import TensorProto

    return value if dtype == np.float32 else build.node("Cast", value, to=TensorProto.FLOAT)


def _classifier(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    (trees, number), how = _trees_of(attributes), attributes.get("post_transform", "NONE")
    labels, why = class_labels(node, attributes, around, "classlabels_strings", "classlabels_int64s")
    if isinstance(trees, str) or why:
        return why or str(trees)
    used, two = sorted(set(attributes["class_ids"])), len(labels) == 2
    if two and used != [0]:
        return "it weighs the second of two classes, of which ONNX Runtime makes the first one's probability"
    base = _numbers(attributes, "base_values")
    if two and len(base) > 1:
        return "it has two base values for one score"
    value, dtype = as_floats(node.input[0], around, build)
    columns = [0] if two else list(range(len(labels)))
    scores = _sums(_weights("class", columns, attributes, number), trees, value, dtype, build, base)
    label, probabilities = node.output
    if two:
        positive = _numbers(attributes, "class_weights").min() >= 0
        return _two_classes(scores, dtype, positive, how, labels, node.output, build)
    chosen_class(build.node("ArgMax", scores, axis=1, keepdims=0), labels, label, build)
    return transform(_float(scores, dtype, build), how, probabilities, build)


def _two_classes(
    score: str, dtype: np.dtype, positive: bool, how: str, labels: list[int], outputs: Sequence[str], build: NodeBuilder
) -> str | None:
    """Build two scores from one, as ONNX Runtime does (`write_scores` in core/providers/cpu/ml/ml_common.h).

    It is of the second class. If no weight is negative, it is a probability p: 1 − p and p. Else a decision value s: −s and s.
    """
    from onnx import TensorProto

    one, middle = (build.constant(np.asarray(each, dtype)) for each in (1.0, 0.5 if positive else 0.0))
    above = build.node("Squeeze", build.node("Greater", score, middle), build.integers(1))
    chosen_class(build.node("Cast", above, to=TensorProto.INT64), labels, outputs[0], build)
    if positive and how == "NONE":
        to_float(build.node("Concat", build.node("Sub", one, score), score, axis=1), outputs[1], build)
        return None
    both = _float(build.node("Concat", build.node("Neg", score), score, axis=1), dtype, build)
    return f"its post_transform is {how}" if how == "SOFTMAX" else transform(both, how, outputs[1], build)


RULES: dict[str, Rule] = {
    "TreeEnsemble": _ensemble, "TreeEnsembleClassifier": _classifier, "TreeEnsembleRegressor": _regressor,
}  # fmt: skip
