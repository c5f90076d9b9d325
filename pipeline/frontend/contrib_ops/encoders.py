"""Express encoders of categories of `ai.onnx.ml`, as far as these are numbers: no C library takes texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from .classical import as_dtype
from .context import Attributes, Rule, Surroundings

if TYPE_CHECKING:
    import onnx

_TEXTS = "its categories are texts, which no C library here takes: encode them before, and train on their numbers"


def _equal(value: str, keys: np.ndarray, build: NodeBuilder) -> str:
    """Build whether each element is each of the keys, along a new last axis; NaN is NaN."""
    each = build.node("Unsqueeze", value, build.integers(-1))
    same = build.node("Equal", each, build.constant(keys))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        nan = build.node("And", build.node("IsNaN", each), build.constant(np.isnan(keys)))
        same = build.node("Or", same, nan)
    return same


def _one_hot(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build a column for each category: 1 for that of the element, all 0 for one that is not known."""
    if attributes.get("cats_strings"):
        raise UnsupportedForm(_TEXTS)
    categories = np.asarray(attributes["cats_int64s"], np.int64)
    value = as_dtype(node.input[0], np.int64, around, build)
    build.cast(_equal(value, categories, build), np.float32, node.output[0])


def _table(attributes: Attributes, side: str) -> np.ndarray | None:
    """Return the `keys` or `values` of a LabelEncoder; None for texts, and for the names of the first version."""
    from onnx import numpy_helper

    for kind, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if attributes.get(f"{side}_{kind}"):
            return np.asarray(attributes[f"{side}_{kind}"], dtype)
    tensor = attributes.get(f"{side}_tensor")
    table = None if tensor is None else numpy_helper.to_array(tensor).reshape(-1)
    return table if table is not None and table.dtype.kind in "if" else None


def _label_encoder(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    from onnx import numpy_helper

    keys, values = _table(attributes, "keys"), _table(attributes, "values")
    if keys is None or values is None:
        raise UnsupportedForm(_TEXTS)
    if (tensor := attributes.get("default_tensor")) is not None:
        default = numpy_helper.to_array(tensor).reshape(())
    else:
        default = (
            attributes.get("default_int64", -1) if values.dtype.kind == "i" else attributes.get("default_float", -0.0)
        )
    same = build.cast(_equal(node.input[0], keys, build), np.int32)
    found = build.node("Gather", build.constant(values), build.node("ArgMax", same, axis=-1, keepdims=0))
    known = build.cast(build.node("ReduceSum", same, build.integers(-1), keepdims=0), bool)
    build.node("Where", known, found, build.number(default, values.dtype), result=node.output[0])


def _features(node: onnx.NodeProto, attributes: Attributes, around: Surroundings, build: NodeBuilder) -> None:
    """Build the columns of all inputs side by side, as floats."""
    if any(around.rank(each) != 2 for each in node.input):
        raise UnsupportedForm("an input of it is not a table")
    parts = [build.cast(each, np.float32) for each in node.input]
    build.node("Concat", *parts, axis=1, result=node.output[0])


RULES: dict[str, Rule] = {"FeatureVectorizer": _features, "LabelEncoder": _label_encoder, "OneHotEncoder": _one_hot}
