"""Express ensembles of decision trees of `ai.onnx.ml`: all trees at once, one level at a time.

Nodes of all trees are rows of tables: feature, threshold, next node if the test holds, next node if not. A leaf is its own
next node. So a level is four lookups by node and one by feature, for each row of the input and each tree; after as many
levels as the deepest tree has, every tree is at a leaf, whose weights are summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..canonical.node_builder import NodeBuilder
from .classical import as_floats, chosen_class, class_labels, transform
from .context import Rule, Surroundings

if TYPE_CHECKING:
    import onnx

_Attributes = dict[str, Any]
#: tests of a branch, as ONNX's operators; of texts and, in operator set 5, of numbers in this order
_TESTS = {
    "BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual", "BRANCH_GT": "Greater",
    "BRANCH_EQ": "Equal", "BRANCH_NEQ": "Equal",
}  # fmt: skip
#: modes of operator set 5 by number; a value is a member if it equals one of a list
_MODES = (*_TESTS, "BRANCH_MEMBER")
#: numbers of operator set 5; transforms as ONNX Runtime numbers them (`POST_EVAL_TRANSFORM` in ml_common.h), ONNX has 1 and 2
#: the other way round
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class _Trees:
    """Tables by node of all trees, the roots, and the depth of the deepest tree.

    `missing` tells the nodes at which NaN goes where the test holds.
    """

    modes: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    holds: np.ndarray
    fails: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    depth: int


def _tables(
    roots: Sequence[int] | None,
    modes: Sequence[str],
    feature: Any,
    threshold: Any,
    holds: Any,
    fails: Any,
    missing: Any,
) -> _Trees | str:
    """Make leaves their own next nodes and measure the depth; return the reason if there is no such form."""
    kinds, itself = np.asarray(modes), np.arange(len(modes))
    if strange := sorted(set(kinds) - _TESTS.keys() - {"LEAF"}):
        return f"its branches are {', '.join(strange)}"
    leaf = kinds == "LEAF"
    feature, holds, fails = (
        np.where(leaf, end, np.asarray(each, np.int64))
        for each, end in ((feature, 0), (holds, itself), (fails, itself))
    )
    if roots is None:
        roots = np.setdiff1d(itself, np.concatenate([holds[~leaf], fails[~leaf]]))
    missing = np.asarray(missing, bool) if missing is not None else np.zeros(len(modes), bool)
    reached, depth = np.asarray(roots, np.int64), 0
    while not leaf[reached].all():
        reached, depth = np.unique([holds[reached], fails[reached]]), depth + 1
        if depth > len(modes):
            return "its branches go round in a circle"
    return _Trees(kinds, feature, np.asarray(threshold), holds, fails, missing, np.asarray(roots, np.int64), depth)


def _numbers(attributes: _Attributes, name: str) -> np.ndarray | None:
    """Return an attribute that is a list of floats or, as doubles, a tensor; None if it is neither."""
    from onnx import numpy_helper

    if tensor := attributes.get(f"{name}_as_tensor"):
        return numpy_helper.to_array(tensor)
    return np.asarray(attributes[name], np.float32) if attributes.get(name) else None


def _trees_of(attributes: _Attributes) -> tuple[_Trees | str, dict[tuple[int, int], int]]:
    """Read the tables of an ensemble, or the reason if it has no such form; and the rows of nodes by tree and number."""
    keys = list(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"]))
    number = {key: index for index, key in enumerate(keys)}
    holds, fails = (
        [number.get((tree, to), 0) for (tree, _), to in zip(keys, attributes[f"nodes_{side}nodeids"])]
        for side in ("true", "false")
    )
    missing = attributes.get("nodes_missing_value_tracks_true")
    values = _numbers(attributes, "nodes_values")
    modes, feature = attributes["nodes_modes"], attributes["nodes_featureids"]
    return _tables(None, modes, feature, values, holds, fails, missing or None), number


def _leaves(trees: _Trees, value: str, dtype: np.dtype, build: NodeBuilder) -> str:
    """Build the descent of all trees; return the numbers of their leaves, by row of the input and tree."""
    feature, holds, fails = (
        build.constant(each.astype(np.int32)) for each in (trees.feature, trees.holds, trees.fails)
    )
    threshold, missing = build.constant(trees.threshold.astype(dtype)), build.constant(trees.missing)
    kinds = sorted(set(trees.modes) - {"LEAF"})
    is_of = {kind: build.constant(trees.modes == kind) for kind in kinds if len(kinds) > 1}
    rows = build.node("Slice", build.node("Shape", value), build.integers(0), build.integers(1))
    shape = build.node("Concat", rows, build.integers(len(trees.roots)), axis=0)
    at = build.node("Expand", build.constant(trees.roots.astype(np.int32)[None]), shape)
    for _ in range(trees.depth):
        looked_at = build.node("GatherElements", value, build.node("Gather", feature, at), axis=1)
        limit, met = build.node("Gather", threshold, at), ""
        for kind in kinds:
            holds_of = build.node(_TESTS[kind], looked_at, limit)
            if kind == "BRANCH_NEQ":
                holds_of = build.node("Not", holds_of)
            if is_of:
                holds_of = build.node("And", holds_of, build.node("Gather", is_of[kind], at))
            met = build.node("Or", met, holds_of) if met else holds_of
        if trees.missing.any():
            met = build.node(
                "Or", met, build.node("And", build.node("IsNaN", looked_at), build.node("Gather", missing, at))
            )
        at = build.node("Where", met, build.node("Gather", holds, at), build.node("Gather", fails, at))
    return at


def _aggregated(
    weights: np.ndarray, how: str, base: np.ndarray | None, trees: _Trees, given: str, around: Surroundings,
    build: NodeBuilder,
) -> str:  # fmt: skip
    """Build the sum, mean, least or greatest of the weights at the leaves; `weights` are by node and column.

    ONNX Runtime computes with doubles if the input is of doubles.
    """
    value, dtype = as_floats(given, around, build)
    at_leaves = build.node("Gather", build.constant(weights.astype(dtype)), _leaves(trees, value, dtype, build))
    reduce = {"MIN": "ReduceMin", "MAX": "ReduceMax"}.get(how, "ReduceSum")
    scores = build.node(reduce, at_leaves, build.integers(1), keepdims=0)
    if how == "AVERAGE":
        scores = build.node("Div", scores, build.constant(np.asarray(len(trees.roots), dtype)))
    return scores if base is None else build.node("Add", scores, build.constant(base.astype(dtype)))


def _narrowed(scores: str, node: onnx.NodeProto, around: Surroundings, build: NodeBuilder) -> str:
    """Build the scores as float32, which results are before operator set 5."""
    from onnx import TensorProto

    doubles = around.dtype(node.input[0]) == np.float64
    return build.node("Cast", scores, to=TensorProto.FLOAT) if doubles else scores


def _weights(
    kind: str, columns: list[int], trees: _Trees, number: dict[tuple[int, int], int], attributes: _Attributes
) -> np.ndarray:
    """Return the weights of `kind` (class, target) by node; `columns` are the numbers they go to."""
    given = _numbers(attributes, f"{kind}_weights")
    assert given is not None
    weights = np.zeros((len(trees.feature), len(columns)), given.dtype)
    entries = zip(*(attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")), given)
    for tree, leaf, column, weight in entries:
        weights[number[tree, leaf], columns.index(column)] += weight
    return weights


def _refused(how: str, targets: int) -> str | None:
    """Return the reason if weights are combined in a way that is not built."""
    if how not in _AGGREGATES:
        return f"its aggregate_function is {how}"
    if how in ("MIN", "MAX") and targets > 1:
        return f"its aggregate_function is {how} of {targets} targets"
    return None


def _transformed(scores: str, how: str, targets: int, result: str, build: NodeBuilder) -> str | None:
    """Build the `post_transform` of a regressor.

    ONNX Runtime makes none of one target, except PROBIT (`FinalizeScores1` in core/providers/cpu/ml/tree_ensemble_aggregator.h).
    """
    return transform(scores, how if targets > 1 or how == "PROBIT" else "NONE", result, build)


def _regressor(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    trees, number = _trees_of(attributes)
    how, targets = attributes.get("aggregate_function", "SUM"), attributes.get("n_targets", 1)
    if isinstance(trees, str):
        return trees
    if why := _refused(how, targets):
        return why
    weights = _weights("target", list(range(targets)), trees, number, attributes)
    scores = _aggregated(weights, how, _numbers(attributes, "base_values"), trees, node.input[0], around, build)
    scores = _narrowed(scores, node, around, build)
    return _transformed(scores, attributes.get("post_transform", "NONE"), targets, node.output[0], build)


def _ensemble(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    """Build an ensemble of operator set 5, whose result is of the input's dtype."""
    from onnx import numpy_helper

    weights_of = numpy_helper.to_array(attributes["leaf_weights"])
    how, targets = _AGGREGATES[attributes.get("aggregate_function", 1)], attributes["n_targets"]
    trees = _tables(attributes["tree_roots"], *zip(*_branches_then_leaves(attributes, len(weights_of))))
    if isinstance(trees, str):
        return trees
    if why := _refused(how, targets):
        return why
    weights = np.zeros((len(trees.modes), targets), weights_of.dtype)
    weights[np.flatnonzero(trees.modes == "LEAF"), attributes["leaf_targetids"]] = weights_of
    scores = _aggregated(weights, how, None, trees, node.input[0], around, build)
    return _transformed(scores, _TRANSFORMS[attributes.get("post_transform", 0)], targets, node.output[0], build)


def _branches_then_leaves(attributes: _Attributes, leaves: int) -> list[list[Any]]:
    """Return a row of `_tables` for each branch and leaf of operator set 5, which numbers them apart.

    A test for members of a set is a chain of tests for each member. The members of all sets are a list, with NaN after each.
    """
    from onnx import numpy_helper

    modes, thresholds = (numpy_helper.to_array(attributes[f"nodes_{name}"]) for name in ("modes", "splits"))
    count = len(modes)
    holds, fails = (
        [
            to + count * bool(leaf)
            for to, leaf in zip(attributes[f"nodes_{side}nodeids"], attributes[f"nodes_{side}leafs"])
        ]
        for side in ("true", "false")
    )
    missing = attributes.get("nodes_missing_value_tracks_true") or [0] * count
    rows = [
        list(row)
        for row in zip(
            (_MODES[mode] for mode in modes), attributes["nodes_featureids"], thresholds, holds, fails, missing
        )
    ]
    rows += [["LEAF", 0, 0.0, 0, 0, 0] for _ in range(leaves)]
    members = numpy_helper.to_array(attributes["membership_values"]) if "membership_values" in attributes else []
    ends = np.flatnonzero(np.isnan(members))
    sets = iter(np.split(members, ends))
    for row in [row for row in rows if row[0] == "BRANCH_MEMBER"]:
        values = [value for value in next(sets) if value == value] or [np.nan]
        row[0], row[2] = "BRANCH_EQ", values[0]
        for value in values[1:]:
            further = [*row[:2], value, *row[3:]]
            row[4], row = len(rows), further
            rows.append(further)
    return rows


def _classifier(node: onnx.NodeProto, attributes: _Attributes, around: Surroundings, build: NodeBuilder) -> str | None:
    (trees, number), how = _trees_of(attributes), attributes.get("post_transform", "NONE")
    labels, why = class_labels(node, attributes, around, "classlabels_strings", "classlabels_int64s")
    if isinstance(trees, str) or why:
        return why or str(trees)
    used = sorted(set(attributes["class_ids"]))
    label, probabilities = node.output
    if len(labels) == 2:
        if used != [0]:
            return "it weighs the second of two classes, of which ONNX Runtime makes the first one's probability"
        weights = _weights("class", [0], trees, number, attributes)
        return _two_classes(labels, how, trees, weights, node, attributes, around, build)
    weights = _weights("class", list(range(len(labels))), trees, number, attributes)
    base = _numbers(attributes, "base_values")
    scores = _narrowed(_aggregated(weights, "SUM", base, trees, node.input[0], around, build), node, around, build)
    chosen_class(build.node("ArgMax", scores, axis=1, keepdims=0), labels, label, build)
    return transform(scores, how, probabilities, build)


def _two_classes(
    labels: list[int], how: str, trees: _Trees, weights: np.ndarray, node: onnx.NodeProto, attributes: _Attributes,
    around: Surroundings, build: NodeBuilder,
) -> str | None:  # fmt: skip
    """Build two scores from one, as ONNX Runtime does (`write_scores` in core/providers/cpu/ml/ml_common.h).

    It is of the second class. If no weight is negative, it is a probability p: 1 − p and p. Else a decision value s: −s and s.
    """
    from onnx import TensorProto

    base = _numbers(attributes, "base_values")
    if base is not None and len(base) > 1:
        return "it has two base values for one score"
    score = _narrowed(_aggregated(weights, "SUM", base, trees, node.input[0], around, build), node, around, build)
    positive = weights.min() >= 0
    one, middle = (build.constant(np.asarray(each, np.float32)) for each in (1.0, 0.5 if positive else 0.0))
    above = build.node("Squeeze", build.node("Greater", score, middle), build.integers(1))
    chosen_class(build.node("Cast", above, to=TensorProto.INT64), labels, node.output[0], build)
    if positive and how == "NONE":
        build.node("Concat", build.node("Sub", one, score), score, axis=1, result=node.output[1])
        return None
    both = build.node("Concat", build.node("Neg", score), score, axis=1)
    return f"its post_transform is {how}" if how == "SOFTMAX" else transform(both, how, node.output[1], build)


RULES: dict[str, Rule] = {
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
    "TreeEnsemble": _ensemble,
}
