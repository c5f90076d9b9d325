"""Express operators of `ai.onnx.ml`, which converters of scikit-learn's estimators write: scalers and linear models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .context import Attributes, Rule, Surroundings

if TYPE_CHECKING:
    import onnx


#: transforms of scores, as ONNX's operators
_TRANSFORMS = {"NONE": "Identity", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}


def as_dtype(name: str, dtype: type, around: Surroundings, build: NodeBuilder) -> str:
    """Return a value in a dtype, converted if it has another."""
    if around.dtype(name) == dtype:
        return name
    return build.cast(name, dtype)


def as_floats(name: str, around: Surroundings, build: NodeBuilder) -> tuple[str, np.dtype]:
    """Return a value as floats, and their dtype: doubles stay, as ONNX Runtime computes with them."""
    dtype = np.float64 if around.dtype(name) == np.float64 else np.float32
    return as_dtype(name, dtype, around, build), np.dtype(dtype)


def transform(scores: str, how: str, result: str, build: NodeBuilder) -> None:
    """Build the `post_transform` of scores."""
    refuse_transform(how, _TRANSFORMS)
    build.node(_TRANSFORMS[how], scores, result=result, **({"axis": -1} if how == "SOFTMAX" else {}))


def refuse_transform(how: str, known: Iterable[str]) -> None:
    """Refuse a `post_transform` that is not `known`."""
    if how not in known:
        raise UnsupportedForm(f"its post_transform is {how}", f"Choose another post_transform: {', '.join(known)}.")


def class_labels(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, *names: str) -> list[int]:
    """Return the classes of a classifier; `names` are those of the attributes. Raises UnsupportedForm for texts.

    Texts that nothing reads are the numbers of the classes.
    """
    strings, integers = (attributes.get(name) or [] for name in names)
    if strings and node.output[0] not in around.read:
        return list(range(len(strings)))
    if strings:
        raise UnsupportedForm(f"its classes are texts ({strings[0]}, …), which C libraries here do not return")
    return list(integers)


def chosen_class(index: str, labels: Sequence[int], result: str, build: NodeBuilder) -> None:
    """Build the class at each index."""
    if list(labels) == list(range(len(labels))):
        build.node("Identity", index, result=result)
    else:
        build.node("Gather", build.integers(*labels), index, result=result)


def _scaler(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    value, dtype = as_floats(node.input[0], around, build)
    offset, scale = (build.number(attributes[name], dtype) for name in ("offset", "scale"))
    build.cast(build.node("Mul", build.node("Sub", value, offset), scale), np.float32, node.output[0])


def _normalizer(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build the division of each row by its norm; a row of norm 0 stays as it is."""
    how = attributes.get("norm", "MAX")
    operators = {"L1": "ReduceL1", "L2": "ReduceL2", "MAX": "ReduceMax"}
    value, dtype = as_floats(node.input[0], around, build)
    norm = build.node(operators[how], value, build.integers(-1), keepdims=1)
    zero, one = (build.number(each, dtype) for each in (0, 1))
    divisor = build.node("Where", build.node("Equal", norm, zero), one, norm)
    build.cast(build.node("Div", value, divisor), np.float32, node.output[0])


def _linear(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder, rows: int) -> str:
    """Build the scores of a linear model: products with coefficients, by rows, and intercepts."""
    value = as_dtype(node.input[0], np.float32, around, build)
    coefficients = np.asarray(attributes["coefficients"], np.float32).reshape(rows, -1)
    scores = build.node("MatMul", value, build.constant(coefficients.T))
    if attributes.get("intercepts"):
        scores = build.node("Add", scores, build.number(attributes["intercepts"], np.float32))
    return scores


def _regressor(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    scores = _linear(node, attributes, around, build, attributes.get("targets", 1))
    transform(scores, attributes.get("post_transform", "NONE"), node.output[0], build)


def _classifier(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    labels = class_labels(node, attributes, around, "classlabels_strings", "classlabels_ints")
    rows = len(attributes.get("intercepts") or labels)
    if rows != len(labels) or rows < 2:
        raise UnsupportedForm(f"it has {rows} rows of coefficients for {len(labels)} classes")
    scores = _linear(node, attributes, around, build, rows)
    chosen_class(build.node("ArgMax", scores, axis=-1, keepdims=0), labels, node.output[0], build)
    transform(scores, attributes.get("post_transform", "NONE"), node.output[1], build)


def _features(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build the choice of columns; a vector is a row."""
    value, index = node.input
    rank = around.rank(value)
    if rank is None:
        raise UnsupportedForm("the rank of its input is not known")
    if around.dtype(value).kind not in "fiub":
        raise UnsupportedForm("it chooses among texts, which C libraries here do not return")
    if rank == 1:
        value = build.node("Unsqueeze", value, build.integers(0))
    columns = build.node("Reshape", index, build.integers(-1))
    build.node("Gather", value, columns, axis=-1, result=node.output[0])


def _binarizer(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:

    dtype = around.dtype(node.input[0])
    threshold = build.number(attributes.get("threshold", 0.0), dtype)
    above = build.node("Greater", node.input[0], threshold)
    build.cast(above, dtype, node.output[0])


def _imputer(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build the replacement of missing values, which are NaN among floats."""
    value, dtype = node.input[0], around.dtype(node.input[0])
    kind = "float" if dtype.kind == "f" else "int64"
    replaced = attributes.get(f"replaced_value_{kind}", 0)
    new = build.number(attributes[f"imputed_value_{kind}s"], dtype)
    if replaced != replaced:
        missing = build.node("IsNaN", value)
    else:
        missing = build.node("Equal", value, build.number(replaced, dtype))
    build.node("Where", missing, new, value, result=node.output[0])


RULES: dict[str, Rule] = {
    "ArrayFeatureExtractor": _features,
    "Binarizer": _binarizer,
    "Imputer": _imputer,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
}
