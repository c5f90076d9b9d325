"""Express operators of `ai.onnx.ml`, which converters of scikit-learn's estimators write: scalers and linear models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm

#: transforms of scores, as ONNX's operators
_TRANSFORMS = {"NONE": "Identity", "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}


def as_dtype(node: NodeView, dtype: type, build: NodeBuilder) -> str:
    """Return the first operand in a dtype, converted if it has another."""
    return node.input[0] if node.dtype(0) == dtype else build.cast(node.input[0], dtype)


def as_floats(node: NodeView, build: NodeBuilder) -> tuple[str, np.dtype]:
    """Return the first operand as floats, and their dtype: doubles stay, as ONNX Runtime computes with them."""
    dtype = np.float64 if node.dtype(0) == np.float64 else np.float32
    return as_dtype(node, dtype, build), np.dtype(dtype)


def transform(scores: str, how: str, result: str, build: NodeBuilder) -> None:
    """Build the `post_transform` of scores."""
    refuse_transform(how, _TRANSFORMS)
    build.node(_TRANSFORMS[how], scores, result=result, **({"axis": -1} if how == "SOFTMAX" else {}))


def refuse_transform(how: str, known: Iterable[str]) -> None:
    """Refuse a `post_transform` that is not `known`."""
    if how not in known:
        raise UnsupportedForm(f"its post_transform is {how}", f"Choose another post_transform: {', '.join(known)}.")


def class_labels(node: NodeView, *names: str) -> list[int]:
    """Return the classes of a classifier; `names` are those of the attributes. Raises UnsupportedForm for texts.

    Texts that nothing reads are the numbers of the classes.
    """
    strings, integers = (node.get(name) or [] for name in names)
    if strings and node.result not in node.graph.read:
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


def _scaler(node: NodeView, build: NodeBuilder) -> None:
    value, dtype = as_floats(node, build)
    offset, scale = (build.number(node.attributes[name], dtype) for name in ("offset", "scale"))
    build.cast(build.node("Mul", build.node("Sub", value, offset), scale), np.float32, node.result)


def _normalizer(node: NodeView, build: NodeBuilder) -> None:
    """Build the division of each row by its norm; a row of norm 0 stays as it is."""
    how = node.get("norm", "MAX")
    operators = {"L1": "ReduceL1", "L2": "ReduceL2", "MAX": "ReduceMax"}
    value, dtype = as_floats(node, build)
    norm = build.node(operators[how], value, build.integers(-1), keepdims=1)
    zero, one = (build.number(each, dtype) for each in (0, 1))
    divisor = build.node("Where", build.node("Equal", norm, zero), one, norm)
    build.cast(build.node("Div", value, divisor), np.float32, node.result)


def _linear(node: NodeView, build: NodeBuilder, rows: int) -> str:
    """Build the scores of a linear model: products with coefficients, by rows, and intercepts."""
    value = as_dtype(node, np.float32, build)
    coefficients = np.asarray(node.attributes["coefficients"], np.float32).reshape(rows, -1)
    scores = build.node("MatMul", value, build.constant(coefficients.T))
    if node.get("intercepts"):
        scores = build.node("Add", scores, build.number(node.attributes["intercepts"], np.float32))
    return scores


def _regressor(node: NodeView, build: NodeBuilder) -> None:
    scores = _linear(node, build, node.get("targets", 1))
    transform(scores, node.get("post_transform", "NONE"), node.result, build)


def _classifier(node: NodeView, build: NodeBuilder) -> None:
    labels = class_labels(node, "classlabels_strings", "classlabels_ints")
    rows = len(node.get("intercepts") or labels)
    if rows != len(labels) or rows < 2:
        raise UnsupportedForm(f"it has {rows} rows of coefficients for {len(labels)} classes")
    scores = _linear(node, build, rows)
    chosen_class(build.node("ArgMax", scores, axis=-1, keepdims=0), labels, node.result, build)
    transform(scores, node.get("post_transform", "NONE"), node.output[1], build)


def _features(node: NodeView, build: NodeBuilder) -> None:
    """Build the choice of columns; a vector is a row. Negative columns are out of range, as for ONNX Runtime."""
    value, index = node.input
    rank = node.rank(value)
    if rank is None:
        raise UnsupportedForm("the rank of its input is not known")
    if node.dtype(value).kind not in "fiub":
        raise UnsupportedForm("it chooses among texts, which C libraries here do not return")
    if rank == 1:
        value = build.node("Unsqueeze", value, build.integers(0))
    count, known = node.extent(node.input[0], -1), node.constant(index)
    if known is not None and count is not None and ((known < 0) | (known >= count)).any():
        raise UnsupportedForm(f"it chooses columns that its input of {count} does not have", "Correct its indices.")
    if 0 in (node.shape(index) or ()):
        raise UnsupportedForm("it chooses no columns, which ONNX Runtime refuses", "Give it one.")
    columns = build.node("Reshape", index, build.integers(-1))
    if known is None and count is not None:
        negative = build.node("Less", columns, build.integers(0))
        columns = build.node("Where", negative, build.integers(count), columns)
    build.node("Gather", value, columns, axis=-1, result=node.result)


def _binarizer(node: NodeView, build: NodeBuilder) -> None:

    dtype = node.dtype(0)
    threshold = build.number(node.get("threshold", 0.0), dtype)
    above = build.node("Greater", node.input[0], threshold)
    build.cast(above, dtype, node.result)


def _imputer(node: NodeView, build: NodeBuilder) -> None:
    """Build the replacement of missing values, which are NaN among floats."""
    value, dtype = node.input[0], node.dtype(0)
    kind = "float" if dtype.kind == "f" else "int64"
    replaced = node.get(f"replaced_value_{kind}", 0)
    new = build.number(node.attributes[f"imputed_value_{kind}s"], dtype)
    if replaced != replaced:
        missing = build.node("IsNaN", value)
    else:
        missing = build.node("Equal", value, build.number(replaced, dtype))
    build.node("Where", missing, new, value, result=node.result)


RULES: dict[str, Rule] = {
    "ArrayFeatureExtractor": _features,
    "Binarizer": _binarizer,
    "Imputer": _imputer,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
}
