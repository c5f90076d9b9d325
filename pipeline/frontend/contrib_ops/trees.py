"""Express ensembles of decision trees of `ai.onnx.ml`: all trees at once, a loop over their levels.

Nodes of all trees are rows of tables: feature, threshold, next node if the test holds; right behind that is the next one if
not. A leaf's next node is the row before it, and its test is of NaN, which never holds. So a level is three lookups by node
and one by feature, for each row of the input and each tree. The deepest trees come first: where many have ended, another
loop is of those that go on. At the end every tree is at a leaf, whose weights are summed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..canonical.control_flow.build_scan import KEPT, Value, build_scan
from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .classical import as_floats, chosen_class, class_labels, refuse_transform, transform
from .tree_tables import AGAIN, TESTS, Trees, branches_then_leaves, numbers_of, tables, tables_by_tree

#: share of all steps that must be spared for a loop of fewer trees
_SPARED = 0.1
#: numbers of operator set 5; transforms as ONNX Runtime numbers them (`POST_EVAL_TRANSFORM` in ml_common.h), ONNX has 1 and 2
#: the other way round
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def _leaves(trees: Trees, value: str, dtype: np.dtype, build: NodeBuilder) -> str:
    """Build the descent of all trees; return the numbers of their leaves, by row of the input and tree."""
    rows = build.node("Slice", build.node("Shape", value), build.integers(0), build.integers(1))
    shape = build.node("Concat", rows, build.integers(len(trees.depths)), axis=0)
    at = build.node("Expand", build.constant(np.arange(len(trees.depths), dtype=np.int32)[None]), shape)
    going = (trees.depths[:, None] > np.arange(trees.depths.max(initial=0))).sum(0)
    done: list[str] = []
    before = len(trees.depths)
    for start, end in pairwise(_starts(going)):
        on = int(going[start])
        if on < before:
            done.insert(0, build.node("Slice", at, build.integers(on), build.integers(before), build.integers(1)))
            at = build.node("Slice", at, build.integers(0), build.integers(on), build.integers(1))
        at, before = _descend(trees, value, dtype, at, end - start, build), on
    return build.node("Concat", at, *done, axis=1) if done else at


def _starts(going: np.ndarray) -> list[int]:
    """Return the levels at which a loop begins, then their end; `going` counts the trees that go on by level."""
    starts, levels = [0], np.arange(len(going))
    while len(levels):
        spared = (going[starts[-1]] - going) * (len(going) - levels)
        if spared.max() <= _SPARED * going[0] * len(going):
            return [*starts, len(going)]
        starts.append(int(spared.argmax()))
    return []


def _descend(trees: Trees, value: str, dtype: np.dtype, at: str, levels: int, build: NodeBuilder) -> str:
    """Build a loop over levels: the nodes that far behind `at`."""
    from onnx import TensorProto, helper

    def level(body: NodeBuilder, values: dict[str, str]) -> tuple[dict[str, str], list[Value]]:
        return {"at": _Descent(trees, values["x"], dtype, body).step(values["at"])}, []

    numbers = {"level": Value(build.constant(np.arange(levels)), (levels,), TensorProto.INT64)}
    held = {"x": Value(value, None, helper.np_dtype_to_tensor_dtype(dtype))}
    ends, _ = build_scan(build, {"at": Value(at, None, TensorProto.INT32)}, held, numbers, level, note=KEPT)
    return ends["at"]


class _Descent:
    """Build steps from nodes to the next ones by the tables of trees, for rows of `value`."""

    def __init__(self, trees: Trees, value: str, dtype: np.dtype, build: NodeBuilder) -> None:
        self._value, self._build, constant = value, build, build.constant
        self._feature, self._holds = (constant(each.astype(np.int32)) for each in (trees.feature, trees.holds))
        self._threshold = constant(trees.threshold.astype(dtype))
        self._missing = constant(trees.missing) if trees.missing.any() else ""
        kinds = sorted(set(trees.modes) - {"LEAF"})
        self._kinds = {kind: constant(trees.modes == kind) if len(kinds) > 1 else "" for kind in kinds}
        # bounds spare the library checks of each lookup
        self._zero, self._one, self._last, self._most = (
            constant(np.asarray(each, np.int32)) for each in (0, 1, len(trees.feature) - 1, trees.feature.max())
        )

    def step(self, at: str) -> str:
        """Build a level: the nodes behind `at`."""
        build = self._build
        at = build.node("Clip", at, self._zero, self._last)
        feature = build.node("Clip", build.node("Gather", self._feature, at), self._zero, self._most)
        looked_at = build.node("GatherElements", self._value, feature, axis=1)
        met = self._met(looked_at, build.node("Gather", self._threshold, at), at)
        if self._missing:
            missing = build.node("And", build.node("IsNaN", looked_at), build.node("Gather", self._missing, at))
            met = build.node("Or", met, missing)
        return build.node("Add", build.node("Gather", self._holds, at), build.node("Where", met, self._zero, self._one))

    def _met(self, looked_at: str, limit: str, at: str) -> str:
        """Build whether the test of each node holds."""
        build, found = self._build, ""
        for kind, chosen in self._kinds.items():
            test = build.node(TESTS[kind], looked_at, limit)
            if chosen:
                test = build.node("And", test, build.node("Gather", chosen, at))
            found = build.node("Or", found, test) if found else test
        return found


def _aggregated(
    weights: np.ndarray, how: str, base: np.ndarray | None, trees: Trees, node: NodeView, build: NodeBuilder
) -> str:
    """Build the sum, mean, least or greatest of the weights at the leaves; `weights` are by node and column.

    ONNX Runtime computes with doubles if the input is of doubles. Results are float32 before operator set 5.
    """
    if base is not None and len(base) != weights.shape[1]:
        raise UnsupportedForm(f"it has {len(base)} base_values for {weights.shape[1]} scores", AGAIN)
    value, dtype = as_floats(node, build)
    at_leaves = build.node(
        "Gather", build.constant(weights[trees.given].astype(dtype)), _leaves(trees, value, dtype, build)
    )
    reduce = {"MIN": "ReduceMin", "MAX": "ReduceMax"}.get(how, "ReduceSum")
    scores = build.node(reduce, at_leaves, build.integers(1), keepdims=0)
    if how == "AVERAGE":
        scores = build.node("Div", scores, build.constant(np.asarray(len(trees.depths), dtype)))
    if base is not None:
        scores = build.node("Add", scores, build.constant(base.astype(dtype)))
    narrow = dtype == np.float64 and node.op_type != "TreeEnsemble"
    return build.cast(scores, np.float32) if narrow else scores


def _weights(
    kind: str, columns: list[int], number: dict[tuple[int, int], int], node: NodeView
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of `kind` (class, target) by node, and the columns that no tree weighs at each of its leaves.

    `columns` are the numbers that weights go to.
    """
    given = numbers_of(node, f"{kind}_weights")
    if given is None:
        raise UnsupportedForm(f"it has no {kind}_weights", AGAIN)
    weights = np.zeros((len(number), len(columns)), given.dtype)
    weighed = np.repeat(np.asarray(node.attributes["nodes_modes"])[:, None] != "LEAF", len(columns), axis=1)
    entries = zip(*(node.attributes[f"{kind}_{name}"] for name in ("treeids", "nodeids", "ids")), given)
    for tree, leaf, column, weight in entries:
        row = number[tree, leaf], columns.index(column)
        weights[row] += weight
        weighed[row] = True
    names, of = np.unique([tree for tree, _ in number], return_inverse=True)
    by_tree = np.ones((len(names), len(columns)), bool)
    np.logical_and.at(by_tree, of, weighed)
    return weights, ~by_tree.any(0)


def _refuse_unweighed(kind: str, differs: bool) -> None:
    """Refuse leaves without a weight for a column, if that is not the same as a weight of 0.

    ONNX Runtime adds no base value then, and chooses among the other classes (`get_max_weight`, `FinalizeScores` in
    core/providers/cpu/ml/tree_ensemble_aggregator.h).
    """
    if differs:
        raise UnsupportedForm(
            f"leaves of its trees weigh only a part of its {kind}",
            "Write a weight at each leaf for each of them, 0 where it has none.",
        )


def _refuse(how: str, targets: int) -> None:
    """Refuse weights that are combined in a way that is not built."""
    known = _AGGREGATES if targets == 1 else _AGGREGATES[:2]
    if how not in known:
        raise UnsupportedForm(
            f"its aggregate_function is {how} of {targets} targets",
            f"Choose another aggregate_function: {', '.join(known)}.",
        )


def _transformed(scores: str, how: str, targets: int, result: str, build: NodeBuilder) -> None:
    """Build the `post_transform` of a regressor.

    ONNX Runtime makes none of one target, except PROBIT (`FinalizeScores1` in core/providers/cpu/ml/tree_ensemble_aggregator.h).
    """
    transform(scores, how if targets > 1 or how == "PROBIT" else "NONE", result, build)


def _regressor(node: NodeView, build: NodeBuilder) -> None:
    trees, number = tables_by_tree(node)
    how, targets = node.get("aggregate_function", "SUM"), node.get("n_targets", 1)
    _refuse(how, targets)
    weights, lacking = _weights("target", list(range(targets)), number, node)
    base = numbers_of(node, "base_values")
    _refuse_unweighed("targets", base is not None and lacking.any() and targets > 1)
    scores = _aggregated(weights, how, base, trees, node, build)
    _transformed(scores, node.get("post_transform", "NONE"), targets, node.result, build)


def _ensemble(node: NodeView, build: NodeBuilder) -> None:
    """Build an ensemble of operator set 5, whose result is of the input's dtype."""
    from onnx import numpy_helper

    weights_of = numpy_helper.to_array(node.attributes["leaf_weights"])
    how, targets = _AGGREGATES[node.get("aggregate_function", 1)], node.attributes["n_targets"]
    rows = list(zip(*branches_then_leaves(node, len(weights_of))))
    trees = tables(node.attributes["tree_roots"], *rows)
    _refuse(how, targets)
    modes = np.asarray(rows[0])
    weights = np.zeros((len(modes), targets), weights_of.dtype)
    weights[np.flatnonzero(modes == "LEAF"), node.attributes["leaf_targetids"]] = weights_of
    scores = _aggregated(weights, how, None, trees, node, build)
    _transformed(scores, _TRANSFORMS[node.get("post_transform", 0)], targets, node.result, build)


def _classifier(node: NodeView, build: NodeBuilder) -> None:
    (trees, number), how = tables_by_tree(node), node.get("post_transform", "NONE")
    labels = class_labels(node, "classlabels_strings", "classlabels_int64s")
    used = sorted(set(node.attributes["class_ids"]))
    label, probabilities = node.output
    if len(labels) == 2:
        weights, lacking = _weights("class", [0, 1] if 1 in used else [0], number, node)
        based = 0 in used and numbers_of(node, "base_values") is not None
        _refuse_unweighed("two classes", (lacking[-1] and 1 in used) or (lacking[0] and based))
        rule = _weighed_second if 1 in used else _two_classes
        rule(labels, how, trees, weights, node, build)
        return
    weights, lacking = _weights("class", list(range(len(labels))), number, node)
    base = numbers_of(node, "base_values")
    given = numbers_of(node, "class_weights")
    chosen = label in node.graph.read and base is None and not (given is not None and given.min() > 0)
    _refuse_unweighed("classes, and not all above 0", chosen and lacking.any())
    scores = _aggregated(weights, "SUM", base, trees, node, build)
    chosen_class(build.node("ArgMax", scores, axis=1, keepdims=0), labels, label, build)
    transform(scores, how, probabilities, build)


def _two_classes(
    labels: list[int], how: str, trees: Trees, weights: np.ndarray, node: NodeView, build: NodeBuilder
) -> None:
    """Build two scores from one, as ONNX Runtime does (`write_scores` in core/providers/cpu/ml/ml_common.h).

    It is of the second class. If no weight is negative, it is a probability p: 1 − p and p. Else a decision value s: −s and s.
    """
    base = numbers_of(node, "base_values")
    if base is not None and len(base) > 1:
        raise UnsupportedForm("it has two base values for one score")
    score = _aggregated(weights, "SUM", base, trees, node, build)
    positive = weights.min() >= 0
    one, middle = (build.constant(np.asarray(each, np.float32)) for each in (1.0, 0.5 if positive else 0.0))
    above = build.node("Squeeze", build.node("Greater", score, middle), build.integers(1))
    chosen_class(build.cast(above, np.int64), labels, node.result, build)
    if positive and how == "NONE":
        build.node("Concat", build.node("Sub", one, score), score, axis=1, result=node.output[1])
        return
    refuse_transform(how, ("NONE", "LOGISTIC"))
    both = build.node("Concat", build.node("Neg", score), score, axis=1)
    transform(both, how, node.output[1], build)


def _weighed_second(
    labels: list[int], how: str, trees: Trees, weights: np.ndarray, node: NodeView, build: NodeBuilder
) -> None:
    """Build the scores of two classes of which the second one is weighed, and chosen by its score alone.

    As in ONNX Runtime, a base value is the first one's if both are weighed, and the classes are then 0 and 1, whatever their labels.
    """
    alone, base = not weights[:, 0].any() and 0 not in node.attributes["class_ids"], numbers_of(node, "base_values")
    if base is not None and len(base) > 1:
        raise UnsupportedForm("it has two base values beside weights of the second of two classes")
    first = None if base is None or alone else np.array([*base, 0], base.dtype)
    scores = _aggregated(weights, "SUM", first, trees, node, build)
    second = build.node("Slice", scores, *(build.integers(each) for each in (1, 2, 1)))
    middle = build.constant(np.asarray(0.5 if alone and weights.min() >= 0 else 0.0, np.float32))
    above = build.node("Squeeze", build.node("Greater", second, middle), build.integers(1))
    above = build.cast(above, np.int64)
    chosen_class(above, labels if alone else [0, 1], node.result, build)
    transform(scores, how, node.output[1], build)


RULES: dict[str, Rule] = {
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
    "TreeEnsemble": _ensemble,
}
