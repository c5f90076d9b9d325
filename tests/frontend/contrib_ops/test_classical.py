"""Estimators of scikit-learn, as skl2onnx writes them, compute the same in ONNX's own operators; ONNX Runtime runs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from skl2onnx import to_onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from passfit.errors import ModelError
from passfit.frontend.canonicalise import import_model
from passfit.frontend.contrib_ops import expand
from passfit.frontend.given_model import given_model
from passfit.frontend.source.import_options import ImportOptions

from ...models import model_of, run, save
from ...profiles import examples

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
MISSING = X.copy()
MISSING[::7, 1] = np.nan
CATEGORIES = np.round(X).astype(np.int64)
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
    "isolation forest": (IsolationForest(n_estimators=3, max_samples=20, random_state=0), X, None),
    "tree of doubles": (DecisionTreeRegressor(max_depth=4), X.astype(np.float64) / 3, X[:, 2] / 7),
    "forest of doubles": (RandomForestClassifier(3, max_depth=3, random_state=0), X.astype(np.float64) / 3, Y),
    "forest of doubles, two classes": (
        RandomForestClassifier(3, max_depth=3, random_state=0),
        X.astype(np.float64) / 3,
        Y == 2,
    ),
    "linear support vectors": (LinearSVC(), X, Y),
    **{f"support vectors, {kernel}": (SVC(kernel=kernel), X, Y) for kernel in ("linear", "poly", "rbf", "sigmoid")},
    "support vectors, two classes": (make_pipeline(StandardScaler(), SVC()), X, np.where(Y == 1, 5, 9)),
    "support vectors, each pair": (SVC(decision_function_shape="ovo"), X, Y),
    "support vectors of numbers": (SVR(), X, X[:, 2]),
    "support vectors, power 4": (make_pipeline(StandardScaler(), SVR(kernel="poly", degree=4, coef0=1.0)), X, X[:, 2]),
    "support vectors of one class": (OneClassSVM(), X, None),
    "categories": (make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()), CATEGORIES, Y),
    "categories of floats": (OneHotEncoder(), CATEGORIES.astype(np.float32), None),
    "categories as numbers": (OrdinalEncoder(), CATEGORIES, None),
    **{norm: (make_pipeline(Normalizer(norm), LogisticRegression()), X, Y) for norm in ("l1", "l2", "max")},
}


def same(model: onnx.ModelProto, folder: Path, rows: np.ndarray, name: str = "X") -> None:
    """Compare the import of a model with the model: dtypes, shapes, integers exactly."""
    imported = import_model(save(model, folder), ImportOptions({name: rows.shape}))
    assert {each.domain for each in imported.graph.node} == {""}
    for found, expected in zip(run(imported, {name: rows}), run(model, {name: rows}), strict=True):
        if isinstance(expected, list):  # of maps, from class to probability
            expected = np.asarray([list(each.values()) for each in expected], np.float32)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        exact, largest = expected.dtype.kind == "i", np.abs(expected).max(initial=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0 if exact else 1e-6 + 2e-6 * largest)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_computes_the_same_in_onnx(tmp_path: Path, name: str) -> None:
    estimator, rows, target = ESTIMATORS[name]
    if isinstance(target, np.ndarray) and target.dtype == bool:
        target = target.astype(np.int64)
    options = (
        {id(estimator): {"zipmap": False}} if rows.dtype == np.float64 and hasattr(estimator, "classes_") else None
    )
    fitted = estimator.fit(rows) if target is None else estimator.fit(rows, target)
    if rows.dtype == np.float64 and hasattr(fitted, "predict_proba"):
        options = {id(fitted): {"zipmap": False}}
    model = to_onnx(fitted, rows[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})
    for output in model.graph.output[-1:]:
        if rows.dtype == np.float64:  # which skl2onnx declares, where operators of trees give floats
            output.type.tensor_type.elem_type = 1
    same(model, tmp_path, rows[40:120])


@pytest.mark.parametrize(
    ("estimator", "target", "said"),
    [
        (
            SVC(probability=True),
            Y,
            "its probabilities are found by iteration: train it without probability=True.*CalibratedClassifierCV",
        ),
        (SVC(), Y.astype(str), r"its classes are texts"),
        (DecisionTreeClassifier(), Y.astype(str), r"its classes are texts \(0, …\)"),
        (LogisticRegression(), Y.astype(str), r"its classes are texts \(0, …\)"),
        (MLPClassifier((2,), max_iter=2), Y.astype(str), "it chooses among texts"),
    ],
)
def test_others_are_refused_with_the_estimators_there_are(tmp_path: Path, estimator, target, said: str) -> None:
    model = to_onnx(estimator.fit(X, target), X[:1])
    with pytest.raises(ModelError, match=said) as refused:
        import_model(save(model, tmp_path), ImportOptions({"X": (1, 4)}))
    assert "trees and forests" in refused.value.hint and "numbers as categories and classes" in refused.value.hint


@pytest.mark.parametrize("estimator", [SVC(), CalibratedClassifierCV(SVC(), ensemble=False)])
def test_what_a_refused_machine_is_advised_to_be_compiles(tmp_path: Path, estimator) -> None:
    model = to_onnx(estimator.fit(X, Y), X[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    same(model, tmp_path, X[40:60])


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), DecisionTreeClassifier(max_depth=2), MLPClassifier((2,), max_iter=2)]
)
def test_probabilities_alone_need_no_texts(tmp_path: Path, estimator) -> None:
    model = to_onnx(estimator.fit(X, np.array(["a", "b", "ü"])[Y]), X[:1])
    path, (_, chosen) = save(model, tmp_path), (value.name for value in model.graph.output)
    with pytest.raises(ModelError) as refused:
        import_model(path, ImportOptions({"X": X.shape}))
    assert refused.value.hint.endswith(f"or keep the probabilities alone: --output {chosen}.")
    (found,) = run(import_model(path, ImportOptions({"X": X.shape}, outputs=[chosen])), {"X": X})
    expected = np.asarray([list(each.values()) for each in run(model, {"X": X})[1]], np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


TESTS = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def grow_trees(random: np.random.Generator, tests: list[str]) -> tuple[dict[str, list], list[tuple[int, int]]]:
    """Return the tables of random trees as attributes have them, and tree and node of each leaf.

    Trees are unbalanced. Numbers on both sides of the tests are equal at times.
    """
    rows: dict[str, list] = {key: [] for key in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}  # fmt: skip
    leaves: list[tuple[int, int]] = []

    def grow(tree: int, number: int, depth: int) -> int:
        """Add the node `number` and all below; return the next free number."""
        leaf = depth == 0 or random.random() < 0.3
        index = len(rows["modes"])
        mode = "LEAF" if leaf else random.choice(tests)
        for key, value in zip(rows, [tree, number, mode, random.integers(3), random.integers(-2, 3), 0, 0, random.integers(2)]):  # fmt: skip
            rows[key].append(value)
        if leaf:
            leaves.append((tree, number))
            return number + 1
        rows["truenodeids"][index] = number + 1
        rows["falsenodeids"][index] = grow(tree, number + 1, depth - 1)
        return grow(tree, rows["falsenodeids"][index], depth - 1)

    for tree in range(random.integers(1, 4)):
        grow(tree, 0, random.integers(4))
    return rows, leaves


def ensemble(
    seed: int, tests: list[str], dtype: type, positive: bool, classes: int, used: tuple[int, ...] = (0,)
) -> onnx.ModelProto:
    """Build a classifier of random trees; that of doubles has numbers that no float32 is."""
    random = np.random.default_rng(seed)
    rows, leaves = grow_trees(random, tests)
    columns = range(classes) if classes > 2 else used
    given = [(tree, leaf, column, random.integers(0 if positive else -8, 9) / 8) for tree, leaf in leaves for column in columns]  # fmt: skip
    attributes = {f"nodes_{key}": values for key, values in rows.items()}
    attributes |= {f"class_{key}": values for key, values in zip(("treeids", "nodeids", "ids", "weights"), zip(*given))}
    if seed % 5 == 0:
        attributes["base_values"] = random.integers(-2, 3, len(columns) if classes > 2 else 1) / 4.0
    for name in ("nodes_values", "class_weights", "base_values"):
        if name in attributes:
            values = np.asarray(attributes.pop(name), np.float64)
            if dtype == np.float64:
                attributes[f"{name}_as_tensor"] = numpy_helper.from_array(values * 1.1)
            else:
                attributes[name] = values.astype(np.float32)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["X"], ["label", "scores"], domain="ai.onnx.ml",
        classlabels_int64s=range(10, 10 + classes), post_transform=("NONE", "LOGISTIC")[seed % 3 == 0], **attributes,
    )  # fmt: skip
    dtypes = {"label": 7, "X": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}
    model = model_of([node], {"X": ["n", 3]}, ["label", "scores"], dtypes=dtypes, domain="ai.onnx.ml", opset=18)
    model.opset_import[1].version = 3
    return model


@settings(max_examples=examples(50))
@given(
    st.integers(0, 2**31),
    st.lists(st.sampled_from(TESTS), min_size=1, max_size=3),
    st.sampled_from([np.float32, np.float64, np.int64]),
    st.booleans(),
    st.integers(2, 4),
    st.sampled_from([(0,), (1,), (0, 1)]),
)
def test_random_trees_take_the_same_branches(tmp_path_factory, seed, tests, dtype, positive, classes, used) -> None:
    rows = np.random.default_rng(seed).integers(-2, 3, (20, 3)).astype(dtype)
    if dtype == np.float64:
        rows *= 1.1
    if dtype != np.int64:
        rows[::3, 1] = np.nan
    same(ensemble(seed, tests, dtype, positive, classes, used), tmp_path_factory.mktemp("trees"), rows)


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("LinearRegressor", {}),
        ("Normalizer", {"norm": "L3"}),
        ("SVMRegressor", {"n_supports": 3, "support_vectors": [1.0, 2.0], "coefficients": [1.0], "rho": [0.0]}),
        ("SVMRegressor", {"coefficients": [1.0, 1.0, 1.0], "kernel_type": "LINEAR"}),
        ("TreeEnsembleRegressor", {"nodes_modes": ["BRANCH_LEQ"], "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_truenodeids": [7], "nodes_falsenodeids": [8]}),
        ("TreeEnsembleRegressor", {"nodes_modes": ["LEAF"], "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_values": [0.0], "nodes_truenodeids": [0], "nodes_falsenodeids": [0]}),
        ("OneHotEncoder", {}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0], "imputed_value_int64s": [1, 2]}),
    ],
)  # fmt: skip
def test_tables_that_do_not_belong_together_are_refused(tmp_path: Path, operator: str, attributes: dict) -> None:
    node = helper.make_node(operator, ["X"], ["y"], domain="ai.onnx.ml", **attributes)
    model = model_of([node], {"X": [2, 3]}, ["y"], domain="ai.onnx.ml")
    with pytest.raises(ModelError):
        import_model(save(model, tmp_path))


@pytest.mark.parametrize("fault", [IndexError, KeyError, StopIteration, ValueError])
def test_a_rule_that_fails_at_a_node_that_onnxruntime_takes_is_a_bug(tmp_path: Path, monkeypatch, fault) -> None:
    """Leave the error as it is: the command line ends with 3, not with advice on the model."""

    def fail(*_: object) -> None:
        raise fault("of ours")

    monkeypatch.setitem(expand.RULES["ai.onnx.ml"], "Scaler", fail)
    right = helper.make_node("Scaler", ["X"], ["y"], domain="ai.onnx.ml", scale=[1.0], offset=[0.0])
    path = save(model_of([right], {"X": [2, 3]}, ["y"], domain="ai.onnx.ml"), tmp_path)
    with pytest.raises(fault, match="of ours"):
        import_model(path)
    wrong = helper.make_node("Scaler", ["X"], ["y"], "scaler", domain="ai.onnx.ml", scale=[1.0])
    path = save(model_of([wrong], {"X": [2, 3]}, ["y"], domain="ai.onnx.ml"), tmp_path)
    with pytest.raises(ModelError, match="Scaler node 'scaler' cannot be compiled: its attributes or operands"):
        import_model(path)


def test_libraries_and_their_reference_answer_categories_that_are_not_known(tmp_path: Path) -> None:
    path = save(to_onnx(OneHotEncoder().fit(CATEGORIES), CATEGORIES[:1]), tmp_path)
    rows = CATEGORIES[:3] + np.int64([[0], [0], [99]])
    reference, imported = (
        given_model(path, ImportOptions({"X": rows.shape})),
        import_model(path, ImportOptions({"X": rows.shape})),
    )
    assert reference is not None
    (expected,), (found,) = run(reference, {"X": rows}), run(imported, {"X": rows})
    np.testing.assert_array_equal(found, expected)
    assert expected.sum(1).tolist() == [4, 4, 0]


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


def test_levels_of_trees_are_loops_of_those_that_go_on(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(2000, 8)).astype(np.float32)
    forest = RandomForestRegressor(40, max_leaf_nodes=31, random_state=0).fit(rows, rows[:, 0] * rows[:, 1])
    imported = import_model(save(to_onnx(forest, rows[:1]), tmp_path), ImportOptions({"X": (1, 8)}))
    shapes = {value.name: [each.dim_value for each in value.type.tensor_type.shape.dim] for value in imported.graph.value_info}  # fmt: skip
    trips = {tensor.name: tensor.dims[0] for tensor in imported.graph.initializer if tensor.dims}
    loops = [node for node in imported.graph.node if node.op_type == "Scan"]
    levels, trees = [trips[node.input[-1]] for node in loops], [shapes[node.output[0]][1] for node in loops]
    depths = [tree.get_depth() for tree in forest.estimators_]
    assert sum(levels) == max(depths) and trees == sorted(trees, reverse=True) and trees[0] > trees[-1]
    assert np.dot(levels, trees) < 0.9 * max(depths) * len(depths)
    assert len(imported.graph.node) < 6 * len(loops) + 12  # and not a kernel for each level
