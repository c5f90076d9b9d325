"""Express ensembles of decision trees of `ai.onnx.ml`: all trees at once, one level at a time.

Nodes of all trees are rows of tables: feature, threshold, next node if the test holds, next node if not. A leaf is its own
next node. So a level is four lookups by node and one by feature, for each row of the input and each tree; after as many
levels as the deepest tree has, every tree is at a leaf, whose weights are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..canonical.node_builder import NodeBuilder
from .classical import as_floats, chosen_class, class_labels, transform
from .context import Rule, Surroundings

if TYPE_CHECKING:
    import onnx

_Attributes = dict[str, Any]
#: tests of a branch, as ONNX's operators
_TESTS = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual", "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal",
}  # fmt: skip


@dataclass(frozen=True)
class _Trees:
    """Tables by node of all trees, the roots, the depth of the deepest tree, and the operator of all tests.

    `missing` tells the nodes at which NaN goes where the test holds.
    """

    feature: np.ndarray
    threshold: np.ndarray
    holds: np.ndarray
    fails: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    depth: int
    test: str
    number: dict[tuple[int, int], int]


def _trees_of(attributes: _Attributes) -> _Trees | str:
    """Read the tables of an ensemble; return the reason if it has no such form."""
    modes = attributes["nodes_modes"]
    tests = {mode for mode in modes if mode != "LEAF"} or {"BRANCH_LEQ"}
    if len(tests) > 1 or not tests <= _TESTS.keys():
        return f"its branches are {', '.join(sorted(tests))}"
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"]))
    number = {key: index for index, key in enumerate(keys)}
    feature, holds = (
        np.asarray(attributes[f"nodes_{name}"], np.int64).copy() for name in ("featureids", "truenodeids")
    )
    fails = np.asarray(attributes["nodes_falsenodeids"], np.int64).copy()
    missing = np.asarray(attributes.get("nodes_missing_value_tracks_true") or np.zeros(len(keys)), bool)
    for index, ((tree, _), mode) in enumerate(zip(keys, modes)):
        if mode == "LEAF":
            feature[index], holds[index], fails[index] = 0, index, index
        else:
            holds[index], fails[index] = number[tree, holds[index]], number[tree, fails[index]]
    below = {index for side in (holds, fails) for index, to in enumerate(side) if to != index}
    inner = set(holds[sorted(below)]) | set(fails[sorted(below)])
    roots = np.asarray([index for index in range(len(keys)) if index not in inner], np.int64)
    reached, depth = roots, 0
    while any(modes[index] != "LEAF" for index in reached):
        reached, depth = np.unique([holds[reached], fails[reached]]), depth + 1
        if depth > len(keys):
            return "its branches go round in a circle"
    threshold = np.asarray(attributes["nodes_values"], np.float32)
    return _Trees(feature, threshold, holds, fails, missing, roots, depth, _TESTS[tests.pop()], number)


def _leaves(trees: _Trees, value: str, dtype: np.dtype, build: NodeBuilder) -> str:
    """Build the descent of all trees; return the numbers of their leaves, by row of the input and tree."""
    feature, holds, fails = (
        build.constant(each.astype(np.int32)) for each in (trees.feature, trees.holds, trees.fails)
    )
    threshold, missing = build.constant(trees.threshold.astype(dtype)), build.constant(trees.missing)
    rows = build.node("Slice", build.node("Shape", value), build.integers(0), build.integers(1))
    shape = build.node("Concat", rows, build.integers(len(trees.roots)), axis=0)
    at = build.node("Expand", build.constant(trees.roots.astype(np.int32)[None]), shape)
    for _ in range(trees.depth):
        looked_at = build.node("GatherElements", value, build.node("Gather", feature, at), axis=1)
        met = build.node(trees.test, looked_at, build.node("Gather", threshold, at))
        if trees.missing.any():
            met = build.node(
                "Or", met, build.node("And", build.node("IsNaN", looked_at), build.node("Gather", missing, at))
            )
        at = build.node("Where", met, build.node("Gather", holds, at), build.node("Gather", fails, at))
    return at


def _summed(
    kind: str, columns: list[int], trees: _Trees, node: onnx.NodeProto, attributes: _Attributes, around: Surroundings,
    build: NodeBuilder,
) -> str:  # fmt: skip
    """Build the sums of the weights of `kind` (class, target) at the leaves; `columns` are the numbers they go to."""
    weights = np.zeros((len(trees.feature), len(columns)), np.float32)
    entries = zip(*(attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids", "weights")))
    for tree, leaf, column, weight in entries:
        weights[trees.number[tree, leaf], columns.index(column)] += weight
    value, dtype = as_floats(node.input[0], around, build)
    at_leaves = build.node("Gather", build.constant(weights), _leaves(trees, value, dtype, build))
    return build.node("ReduceSum", at_leaves, build.integers(1), keepdims=0)


def _plus_base(scores: str, attributes: _Attributes, build: NodeBuilder) -> str:
    base = attributes.get("base_values")
    return build.node("Add", scores, build.constant(np.asarray(base, np.float32))) if base else scores


def _regressor(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    trees, how = _trees_of(attributes), attributes.get("aggregate_function", "SUM")
    if isinstance(trees, str):
        return trees
    if how not in ("SUM", "AVERAGE"):
        return f"its aggregate_function is {how}"
    targets = list(range(attributes.get("n_targets", 1)))
    scores = _summed("target", targets, trees, node, attributes, around, build)
    if how == "AVERAGE":
        scores = build.node("Div", scores, build.constant(np.asarray(len(trees.roots), np.float32)))
    scores = _plus_base(scores, attributes, build)
    return transform(scores, attributes.get("post_transform", "NONE"), node.output[0], build)


def _classifier(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    trees, how = _trees_of(attributes), attributes.get("post_transform", "NONE")
    labels, why = class_labels(node, attributes, around, "classlabels_strings", "classlabels_int64s")
    if isinstance(trees, str) or why:
        return why or str(trees)
    used = sorted(set(attributes["class_ids"]))
    label, probabilities = node.output
    if len(labels) == 2:
        if used != [0]:
            return "it weighs the second of two classes, of which ONNX Runtime makes the first one's probability"
        return _two_classes(labels, how, trees, node, attributes, around, build)
    scores = _summed("class", list(range(len(labels))), trees, node, attributes, around, build)
    scores = _plus_base(scores, attributes, build)
    chosen_class(build.node("ArgMax", scores, axis=1, keepdims=0), labels, label, build)
    return transform(scores, how, probabilities, build)


def _two_classes(
    labels: list[int], how: str, trees: _Trees, node: onnx.NodeProto, attributes: _Attributes,
    around: Surroundings, build: NodeBuilder,
) -> str | None:  # fmt: skip
    """Build two scores from one, as ONNX Runtime does (`write_scores` in core/providers/cpu/ml/ml_common.h).

    It is of the second class. If no weight is negative, it is a probability p: 1 − p and p. Else a decision value s: −s and s.
    """
    from onnx import TensorProto

    if len(attributes.get("base_values") or [0.0]) > 1:
        return "it has two base values for one score"
    score = _plus_base(_summed("class", [0], trees, node, attributes, around, build), attributes, build)
    positive = min(attributes["class_weights"]) >= 0
    one, middle = (build.constant(np.asarray(each, np.float32)) for each in (1.0, 0.5 if positive else 0.0))
    above = build.node("Squeeze", build.node("Greater", score, middle), build.integers(1))
    chosen_class(build.node("Cast", above, to=TensorProto.INT64), labels, node.output[0], build)
    if positive and how == "NONE":
        build.node("Concat", build.node("Sub", one, score), score, axis=1, result=node.output[1])
        return None
    both = build.node("Concat", build.node("Neg", score), score, axis=1)
    return f"its post_transform is {how}" if how == "SOFTMAX" else transform(both, how, node.output[1], build)


RULES: dict[str, Rule] = {"TreeEnsembleClassifier": _classifier, "TreeEnsembleRegressor": _regressor}
