"""Train small models of scikit-learn on its own data, and write them by skl2onnx."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    StackingClassifier,
    VotingClassifier,
)  # fmt: skip
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

WINE, DIABETES, DIGITS = (load(return_X_y=True) for load in (load_wine, load_diabetes, load_digits))
#: as many rows of the digits as models of neighbours keep
_KEPT = 200


def write(model: BaseEstimator, data: tuple[np.ndarray, np.ndarray], path: Path) -> None:
    features, labels = data[0][:_KEPT].astype(np.float32), data[1][:_KEPT]
    model.fit(features, labels)
    options = {"zipmap": False} if hasattr(model, "predict_proba") and hasattr(model, "classes_") else None
    path.write_bytes(to_onnx(model, features[:1], options=options, target_opset=18).SerializeToString())


def write_texts(path: Path) -> None:
    texts = ["the cat sat", "a dog ran far", "the dog sat", "a cat ran"]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [0, 1, 0, 1])
    from skl2onnx.common.data_types import StringTensorType

    file = to_onnx(
        model, initial_types=[("text", StringTensorType([None, 1]))], options={"zipmap": False}, target_opset=18
    )
    path.write_bytes(file.SerializeToString())


def mixed() -> BaseEstimator:
    """Return a pipeline whose columns are scaled, cut into bins, or coded one-hot."""
    columns = [
        ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1, 2, 3]),
        ("bins", KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"), [4, 5]),
        (
            "coded",
            make_pipeline(
                KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
                OneHotEncoder(sparse_output=False),
            ),
            [6],
        ),
    ]
    return make_pipeline(ColumnTransformer(columns), LogisticRegression(max_iter=500))


_MODELS: dict[str, tuple[Callable[[], BaseEstimator], tuple[np.ndarray, np.ndarray]]] = {
    "gradient-boosting": (partial(GradientBoostingClassifier, n_estimators=20, random_state=0), WINE),
    "hist-boosting": (partial(HistGradientBoostingRegressor, max_iter=20, random_state=0), DIABETES),
    "ada-boost": (partial(AdaBoostClassifier, n_estimators=10, random_state=0), WINE),
    "extra-trees": (partial(ExtraTreesRegressor, 10, max_depth=6, random_state=0), DIABETES),
    "svc-rbf": (partial(SVC, probability=True, random_state=0), WINE),
    "svc-poly": (partial(SVC, kernel="poly", random_state=0), WINE),
    "svr": (SVR, DIABETES),
    "one-class-svm": (OneClassSVM, WINE),
    "knn": (KNeighborsClassifier, DIGITS),
    "knn-distance": (partial(KNeighborsRegressor, weights="distance"), DIABETES),
    "outlier-factor": (partial(LocalOutlierFactor, novelty=True), WINE),
    "gaussian-process": (partial(GaussianProcessRegressor, alpha=1.0), DIABETES),
    "gaussian-mixture": (partial(GaussianMixture, 3, random_state=0), WINE),
    "naive-bayes": (GaussianNB, WINE),
    "k-means": (partial(KMeans, 5, n_init=1, random_state=0), DIGITS),
    "pca-mlp": (lambda: make_pipeline(MinMaxScaler(), PCA(16), MLPClassifier((32,), max_iter=30, random_state=0)), DIGITS),
    "polynomial-ridge": (lambda: make_pipeline(StandardScaler(), PolynomialFeatures(2), RidgeClassifier()), WINE),
    "voting": (lambda: VotingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier(random_state=0))], voting="soft", flatten_transform=False), WINE),
    "stacking": (lambda: StackingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier(random_state=0))]), WINE),
    "columns": (mixed, WINE),
    "several-outputs": (lambda: MultiOutputRegressor(Ridge()), (DIABETES[0], DIABETES[0][:, :2])),
}  # fmt: skip
WRITERS: dict[str, Callable[[Path], None]] = {
    f"{name}.skl2onnx": (lambda path, build=build, data=data: write(build(), data, path))
    for name, (build, data) in _MODELS.items()
} | {"tfidf.skl2onnx": write_texts}
