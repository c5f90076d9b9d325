"""Estimators of scikit-learn, as skl2onnx writes them, compute the same in ONNX's own operators; ONNX Runtime runs both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
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
from .same_results import same

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
    with pytest.raises(ModelError) as refused:
        import_model(save(model, tmp_path))
    assert refused.value.hint == ("Check the shapes given." if operator == "Imputer" else "Export the model again.")


def test_no_columns_are_refused_as_by_onnxruntime(tmp_path: Path) -> None:
    choice = helper.make_node("ArrayFeatureExtractor", ["X", "columns"], ["y"], domain="ai.onnx.ml")
    nothing = numpy_helper.from_array(np.zeros(0, np.int64), "columns")
    with pytest.raises(ModelError, match="no columns"):
        import_model(save(model_of([choice], {"X": [2, 3]}, ["y"], [nothing], domain="ai.onnx.ml"), tmp_path))


@pytest.mark.parametrize("columns", [[-1, 0], [0, 3]])
def test_columns_out_of_range_are_refused_or_fail_as_in_onnxruntime(tmp_path: Path, columns: list[int]) -> None:
    choice = helper.make_node("ArrayFeatureExtractor", ["X", "columns"], ["y"], domain="ai.onnx.ml")
    constant = numpy_helper.from_array(np.int64(columns), "columns")
    with pytest.raises(ModelError, match="columns that its input of 3 does not have"):
        import_model(save(model_of([choice], {"X": [2, 3]}, ["y"], [constant], domain="ai.onnx.ml"), tmp_path))
    asked = model_of([choice], {"X": [2, 3], "columns": [2]}, ["y"], domain="ai.onnx.ml")
    asked.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    imported, rows = import_model(save(asked, tmp_path)), np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = run(imported, {"X": rows, "columns": np.int64([2, 0])})
    np.testing.assert_array_equal(found, rows[:, [2, 0]])
    with pytest.raises(InvalidArgument):
        run(imported, {"X": rows, "columns": np.int64(columns)})


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
