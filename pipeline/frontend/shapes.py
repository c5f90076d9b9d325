"""Shapes and dtypes of all values of a graph: inferred, looked up, and refused where they are not static."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ModelError
from .reading import node_title

if TYPE_CHECKING:
    import onnx


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` with the types of all values inferred anew from its inputs; declared result shapes are forgotten.

    Raises ModelError with ONNX's own words where a node contradicts its inputs.
    """
    from onnx import shape_inference

    fresh = type(model)()
    fresh.CopyFrom(model)
    del fresh.graph.value_info[:]
    for value in fresh.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    try:
        return shape_inference.infer_shapes(fresh, check_type=True, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        said = " ".join(str(error).replace("[ShapeInferenceError]", "").split())
        raise ModelError(f"The shapes of the model do not agree: {said}.", "Check the shapes given.") from error


def value_types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """The type of every value whose type is known, initializers included."""
    from onnx import helper

    types = {value.name: value.type for value in (*graph.value_info, *graph.input, *graph.output)}
    for tensor in graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return types


def static_shape(type_: onnx.TypeProto) -> tuple[int, ...] | None:
    """The shape of a tensor type, or None where a size or the rank is open, or where it is no tensor."""
    if not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return None
    dims = type_.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def refuse_open_shapes(model: onnx.ModelProto) -> None:
    """Raise ModelError for the first node, in order, with a result whose shape is not static."""
    types = value_types(model.graph)
    for value in model.graph.input:
        if 0 in (static_shape(value.type) or ()):
            raise ModelError(f"The input '{value.name}' has no elements.", "Remove it before exporting the model.")
    for node in model.graph.node:
        for name in node.output:
            if not name:
                continue
            if name in types and not types[name].HasField("tensor_type"):
                raise ModelError(
                    f"The {node_title(node)} makes '{name}', which is no tensor.", "Export the model with tensors only."
                )
            if name not in types or static_shape(types[name]) is None:
                raise ModelError(
                    f"The shape of '{name}', made by {node_title(node)}, is not known before the model runs.",
                    "Freeze the input it depends on (--fix), or cut the model before this node.",
                )
            if 0 in (static_shape(types[name]) or ()):
                raise ModelError(
                    f"'{name}', made by {node_title(node)}, has no elements.", "Remove it before exporting the model."
                )
