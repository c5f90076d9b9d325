"""Express encoders of categories of `ai.onnx.ml`, as far as these are numbers: no C library takes texts."""

from __future__ import annotations

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .classical import as_dtype

_TEXTS = "its categories are texts, which no C library here takes: encode them before, and train on their numbers"


def _equal(value: str, keys: np.ndarray, build: NodeBuilder) -> str:
    """Build whether each element is each of the keys, along a new last axis; NaN is NaN."""
    each = build.node("Unsqueeze", value, build.integers(-1))
    same = build.node("Equal", each, build.constant(keys))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        nan = build.node("And", build.node("IsNaN", each), build.constant(np.isnan(keys)))
        same = build.node("Or", same, nan)
    return same


def _one_hot(node: NodeView, build: NodeBuilder) -> None:
    """Build a column for each category: 1 for that of the element, all 0 for one that is not known."""
    if node.get("cats_strings"):
        raise UnsupportedForm(_TEXTS)
    categories = np.asarray(node.attributes["cats_int64s"], np.int64)
    value = as_dtype(node, np.int64, build)
    build.cast(_equal(value, categories, build), np.float32, node.result)


def _table(node: NodeView, side: str) -> np.ndarray | None:
    """Return the `keys` or `values` of a LabelEncoder; None for texts, and for the names of the first version."""
    from onnx import numpy_helper

    for kind, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if node.get(f"{side}_{kind}"):
            return np.asarray(node.attributes[f"{side}_{kind}"], dtype)
    tensor = node.get(f"{side}_tensor")
    table = None if tensor is None else numpy_helper.to_array(tensor).reshape(-1)
    return table if table is not None and table.dtype.kind in "if" else None


def _label_encoder(node: NodeView, build: NodeBuilder) -> None:
    from onnx import numpy_helper

    keys, values = _table(node, "keys"), _table(node, "values")
    if keys is None or values is None:
        raise UnsupportedForm(_TEXTS)
    if (tensor := node.get("default_tensor")) is not None:
        default = numpy_helper.to_array(tensor).reshape(())
    else:
        default = node.get("default_int64", -1) if values.dtype.kind == "i" else node.get("default_float", -0.0)
    same = build.cast(_equal(node.input[0], keys, build), np.int32)
    found = build.node("Gather", build.constant(values), build.node("ArgMax", same, axis=-1, keepdims=0))
    known = build.cast(build.node("ReduceSum", same, build.integers(-1), keepdims=0), bool)
    build.node("Where", known, found, build.number(default, values.dtype), result=node.result)


def _features(node: NodeView, build: NodeBuilder) -> None:
    """Build the columns of all inputs side by side, as floats."""
    if any(node.rank(each) != 2 for each in node.input):
        raise UnsupportedForm("an input of it is not a table")
    parts = [build.cast(each, np.float32) for each in node.input]
    build.node("Concat", *parts, axis=1, result=node.result)


RULES: dict[str, Rule] = {"FeatureVectorizer": _features, "LabelEncoder": _label_encoder, "OneHotEncoder": _one_hot}
