"""Express support-vector machines of `ai.onnx.ml`: kernels of a row with all support vectors, then products with coefficients.

A decision value is of a pair of classes, and sums the vectors of these two. With zeros for all others, the decision values of
all pairs are one product.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .classical import as_dtype, chosen_class, class_labels, refuse_transform, transform

_RECALIBRATE = (
    "its probabilities are found by iteration: train it without probability=True, which leaves decision values, "
    "or calibrate it by CalibratedClassifierCV"
)


def _kernels(value: str, vectors: np.ndarray, node: NodeView, build: NodeBuilder) -> str:
    """Build the kernel of each row with each of the `vectors`: [rows, vectors]."""
    kind = node.attributes["kernel_type"]
    gamma, coef0, degree = (np.asarray(each, np.float32) for each in node.attributes["kernel_params"])
    if kind == "RBF":
        apart = build.node("Sub", build.node("Unsqueeze", value, build.integers(1)), build.constant(vectors))
        squares = build.node("ReduceSum", build.node("Mul", apart, apart), build.integers(2), keepdims=0)
        return build.node("Exp", build.node("Mul", squares, build.constant(-gamma)))
    products = build.node("Mul", build.node("MatMul", value, build.constant(vectors.T)), build.constant(gamma))
    sums = build.node("Add", products, build.constant(coef0))
    return build.node("Pow", sums, build.constant(degree)) if kind == "POLY" else build.node("Tanh", sums)


def _scores(node: NodeView, build: NodeBuilder, vectors: int, weights: np.ndarray, sums: type) -> str:
    """Build the decision values: [rows, columns of `weights`], as float32; products with weights are of the dtype `sums`.

    Without a kernel, the support vectors are summed here: the weights are then of features. So they are in files without vectors.
    """
    value = as_dtype(node, np.float32, build)
    if node.rank(0) == 1:
        value = build.node("Unsqueeze", value, build.integers(0))
    support = np.asarray(node.get("support_vectors") or (), np.float32).reshape(vectors, -1)
    linear = node.get("kernel_type", "LINEAR") == "LINEAR"
    if vectors and linear:
        weights = support.T.astype(np.float64) @ weights
    if vectors and not linear:
        value = _kernels(value, support, node, build)
    else:
        sums = np.float32
    rho = build.number(node.attributes["rho"][: weights.shape[1]], sums)
    if sums != np.float32:
        value = build.cast(value, sums)
    scores = build.node("Add", build.node("MatMul", value, build.constant(weights.astype(sums))), rho)
    return scores if sums == np.float32 else build.cast(scores, np.float32)


def _regressor(node: NodeView, build: NodeBuilder) -> None:
    weights = np.asarray(node.attributes["coefficients"])[:, None]
    score = _scores(node, build, node.get("n_supports", 0), weights, np.float32)
    if node.get("one_class"):
        zero, one, other = (build.number(each, np.float32) for each in (0, 1, -1))
        build.node("Where", build.node("Greater", score, zero), one, other, result=node.result)
    else:
        build.cast(score, np.float32, node.result)


def _pair_weights(coefficients: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Return the weights of all vectors in each pair of classes i < j: [vectors, pairs].

    Row j − 1 of the `coefficients` is of class i's vectors against class j, and row i of class j's against class i.
    """
    ends = np.cumsum([0, *sizes])
    own = [slice(*ends) for ends in pairwise(ends)]
    columns = []
    for i, j in combinations(range(len(sizes)), 2):
        column = np.zeros(ends[-1])
        column[own[i]], column[own[j]] = coefficients[j - 1, own[i]], coefficients[i, own[j]]
        columns.append(column)
    return np.stack(columns, 1)


def _classifier(node: NodeView, build: NodeBuilder) -> None:

    labels = class_labels(node, "classlabels_strings", "classlabels_ints")
    sizes, count = node.get("vectors_per_class") or [], len(labels)
    if count < 2 or len(sizes) != count:
        raise UnsupportedForm(f"it has support vectors of {len(sizes)} classes, and {count} classes")
    label, result = node.output
    how = node.get("post_transform", "NONE")
    if result in node.graph.read and node.get("prob_a"):
        raise UnsupportedForm(_RECALIBRATE)
    weights = _pair_weights(np.asarray(node.attributes["coefficients"]).reshape(count - 1, -1), sizes)
    scores = _scores(node, build, sum(sizes), weights, np.float64)  # as ONNX Runtime sums
    first = build.node("Greater", scores, build.number(0, np.float32))
    votes = np.zeros((2, weights.shape[1], count), np.float32)
    for pair, (i, j) in enumerate(combinations(range(count), 2)):
        votes[0, pair, i] = votes[1, pair, j] = 1
    # a vote for i or for j: those for j, and the difference where i is chosen
    won = build.node("MatMul", build.cast(first, np.float32), build.constant(votes[0] - votes[1]))
    won = build.node("Add", won, build.constant(votes[1].sum(0)))
    chosen_class(build.node("ArgMax", won, axis=1, keepdims=0), labels, label, build)
    if node.get("prob_a"):
        return
    if count > 2:
        transform(scores, how, result, build)
    else:
        refuse_transform(how, ["NONE"])
        build.node("Concat", build.node("Neg", scores), scores, axis=1, result=result)


RULES: dict[str, Rule] = {"SVMClassifier": _classifier, "SVMRegressor": _regressor}
