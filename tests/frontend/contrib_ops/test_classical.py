"""Estimators of scikit-learn, as skl2onnx writes them, compute the same in ONNX's own operators; ONNX Runtime runs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model

from ...models import model_of, run, save
from ...profiles import examples

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
MISSING = X.copy()
MISSING[::7, 1] = np.nan
#: estimator, rows to fit and to ask, classes or targets
ESTIMATORS = {
    "linear regression": (LinearRegression(), X, X[:, 0]),
    "logistic regression": (make_pipeline(StandardScaler(), LogisticRegression()), X, Y),
    "logistic regression, classes 5 and 9": (LogisticRegression(), X, np.where(Y == 1, 5, 9)),
    "neural network": (make_pipeline(MinMaxScaler(), MLPClassifier((4,), max_iter=20, random_state=0)), X, Y),
    "tree": (DecisionTreeClassifier(max_depth=3, random_state=0), X, Y * 3 - 1),
    "forest": (make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=4, random_state=0)), X, Y),
    "forest of two classes": (RandomForestClassifier(3, max_depth=2, random_state=0), X, Y == 2),
    "forest of numbers": (RandomForestRegressor(4, max_depth=3, random_state=0), X, X[:, :2]),
    "boosted": (GradientBoostingClassifier(n_estimators=3, random_state=0), X, Y),
    "boosted, two classes": (GradientBoostingClassifier(n_estimators=4, random_state=0), X, Y == 1),
    "boosted numbers": (GradientBoostingRegressor(n_estimators=4, random_state=0), X, X[:, 2]),
    "imputed": (make_pipeline(SimpleImputer(), Binarizer(threshold=2.0), LogisticRegression()), MISSING, Y),
    **{norm: (make_pipeline(Normalizer(norm), LogisticRegression()), X, Y) for norm in ("l1", "l2", "max")},
}


def same(model: onnx.ModelProto, folder: Path, rows: np.ndarray, name: str = "X") -> None:
    """Compare the import of a model with the model: dtypes, shapes, integers exactly."""
    imported = import_model(save(model, folder), {name: rows.shape})
    assert {each.domain for each in imported.graph.node} == {""}
    for found, expected in zip(run(imported, {name: rows}), run(model, {name: rows}), strict=True):
        if isinstance(expected, list):  # of maps, from class to probability
            expected = np.asarray([list(each.values()) for each in expected], np.float32)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0 if expected.dtype.kind == "i" else 1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_computes_the_same_in_onnx(tmp_path: Path, name: str) -> None:
    estimator, rows, target = ESTIMATORS[name]
    if isinstance(target, np.ndarray) and target.dtype == bool:
        target = target.astype(np.int64)
    same(to_onnx(estimator.fit(rows, target), rows[:1]), tmp_path, rows[40:120])


@pytest.mark.parametrize(
    ("estimator", "target", "said"),
    [
        (SVC(), Y, "SVMClassifier node 'SVMc' is of the domain 'ai.onnx.ml'"),
        (DecisionTreeClassifier(), Y.astype(str), r"its classes are texts \(0, …\)"),
        (LogisticRegression(), Y.astype(str), r"its classes are texts \(0, …\)"),
        (MLPClassifier((2,), max_iter=2), Y.astype(str), "it chooses among texts"),
    ],
)
def test_others_are_refused_with_the_estimators_there_are(tmp_path: Path, estimator, target, said: str) -> None:
    model = to_onnx(estimator.fit(X, target), X[:1])
    with pytest.raises(ModelError, match=said) as refused:
        import_model(save(model, tmp_path), {"X": (1, 4)})
    assert "trees and forests" in refused.value.hint and "numbers as classes" in refused.value.hint


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=2), MLPClassifier((2,), max_iter=2)]
)
def test_probabilities_alone_need_no_texts(tmp_path: Path, estimator) -> None:
    model = to_onnx(estimator.fit(X, np.array(["a", "b", "ü"])[Y]), X[:1])
    path, (_, chosen) = save(model, tmp_path), (value.name for value in model.graph.output)
    (found,) = run(import_model(path, {"X": X.shape}, outputs=[chosen]), {"X": X})
    expected = np.asarray([list(each.values()) for each in run(model, {"X": X})[1]], np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


TESTS = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def ensemble(seed: int, test: str, kind: int, positive: bool, classes: int) -> onnx.ModelProto:
    """Build a classifier of random trees, unbalanced; numbers on both sides of the tests are equal at times.

    No test is tests of all kinds. Of half the seeds, numbers are tensors.
    """
    random = np.random.default_rng(seed)
    rows: dict[str, list] = {key: [] for key in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}  # fmt: skip
    leaves: list[tuple[int, int]] = []

    def grow(tree: int, number: int, depth: int) -> int:
        """Add the node `number` and all below; return the next free number."""
        leaf = depth == 0 or random.random() < 0.3
        index = len(rows["modes"])
        values = [
            tree,
            number,
            "LEAF" if leaf else test or random.choice(TESTS),
            random.integers(3),
            random.integers(-2, 3),
            0,
            0,
            random.integers(2),
        ]
        for key, value in zip(rows, values):
            rows[key].append(value)
        if leaf:
            leaves.append((tree, number))
            return number + 1
        rows["truenodeids"][index] = number + 1
        rows["falsenodeids"][index] = grow(tree, number + 1, depth - 1)
        return grow(tree, rows["falsenodeids"][index], depth - 1)

    for tree in range(random.integers(1, 4)):
        grow(tree, 0, random.integers(0, 4))
    rows["values"] = np.float32(rows["values"])
    columns = range(classes) if classes > 2 else [0]
    given = [(tree, leaf, column, random.integers(0 if positive else -8, 9) / 8) for tree, leaf in leaves for column in columns]  # fmt: skip
    attributes = {f"nodes_{key}": values for key, values in rows.items()}
    attributes |= {f"class_{key}": values for key, values in zip(("treeids", "nodeids", "ids", "weights"), zip(*given))}
    if seed % 5 == 0:
        attributes["base_values"] = random.integers(-2, 3, len(columns)) / 4.0
    if seed % 2:
        dtype = np.float64 if kind == TensorProto.DOUBLE else np.float32
        for name in {"nodes_values", "class_weights", "base_values"} & attributes.keys():
            attributes[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(attributes.pop(name), dtype))
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml",
        classlabels_int64s=range(10, 10 + classes), post_transform=("NONE", "LOGISTIC")[seed % 3 == 0], **attributes,
    )  # fmt: skip
    return model_of(
        [node],
        {"X": ["n", 3]},
        ["label", "scores"],
        dtypes={"label": 7, "X": kind},
        domain="ai.onnx.ml",
        domain_opset=3,
        opset=18,
    )


@settings(max_examples=examples(50))
@given(
    st.integers(0, 2**31),
    st.sampled_from(["", *TESTS]),
    st.sampled_from([np.float32, np.float64, np.int64]),
    st.booleans(),
    st.integers(2, 4),
)
def test_random_trees_take_the_same_branches(tmp_path_factory, seed, test, dtype, positive, classes) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    rows = np.random.default_rng(seed).integers(-2, 3, (20, 3)).astype(dtype)
    if dtype != np.int64:
        rows[::3, 1] = np.nan
    same(ensemble(seed, test, kind, positive, classes), tmp_path_factory.mktemp("trees"), rows)


def numbered(seed: int, dtype: type, targets: int) -> onnx.ModelProto:
    """Build a TreeEnsemble of operator set 5: tests of all kinds, mixed, in trees of branches and leaves."""
    random = np.random.default_rng(seed)
    branches: list[list] = []  # feature, test, split, true, true is a leaf, false, false is a leaf, NaN goes to true
    leaves: list[list] = []
    members: list[float] = []

    def grow(depth: int) -> tuple[int, int]:
        """Add a leaf, or a branch and all below; return its number, and 1 for a leaf."""
        if depth == 0:
            leaves.append([random.integers(targets), random.integers(-8, 9) / 8])
            return len(leaves) - 1, 1
        row = len(branches)
        branches.append(
            [random.integers(3), random.integers(7), random.integers(-2, 3), 0, 0, 0, 0, random.integers(2)]
        )
        if branches[row][1] == 6:
            members.extend([*random.choice(range(5), random.integers(1, 4), replace=False), np.nan])
        branches[row][3:7] = [*grow(random.integers(depth)), *grow(random.integers(depth))]
        return row, 0

    roots = [grow(4)[0] for _ in range(random.integers(1, 4))]
    names = ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "missing_value_tracks_true")  # fmt: skip
    table = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*branches))}
    table["nodes_modes"] = numpy_helper.from_array(np.array(table["nodes_modes"], np.uint8))
    ids, weights = zip(*leaves)
    tensors = {"nodes_splits": table["nodes_splits"], "leaf_weights": weights, "membership_values": members}
    attributes = table | {name: numpy_helper.from_array(np.array(values, dtype)) for name, values in tensors.items()}
    how = random.integers(4 if targets == 1 else 2)
    node = helper.make_node(
        "TreeEnsemble", ["X"], ["scores"], domain="ai.onnx.ml", n_targets=targets, leaf_targetids=ids, tree_roots=roots,
        aggregate_function=how, post_transform=random.integers(3), **attributes,
    )  # fmt: skip
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model_of(
        [node],
        {"X": ["n", 3]},
        ["scores"],
        dtypes={"scores": kind, "X": kind},
        domain="ai.onnx.ml",
        domain_opset=5,
        opset=21,
    )


@settings(max_examples=examples(50))
@given(st.integers(0, 2**31), st.sampled_from([np.float32, np.float64]), st.integers(1, 3))
def test_numbered_branches_and_leaves_are_the_same_trees(tmp_path_factory, seed, dtype, targets) -> None:
    rows = np.random.default_rng(seed).integers(-2, 5, (20, 3)).astype(dtype)
    rows[::3, 1] = np.nan
    same(numbered(seed, dtype, targets), tmp_path_factory.mktemp("trees"), rows)
