"""Infer and look up shapes and dtypes of all values of a graph; refuse open shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ..source.model_file import copy_field
from .read_onnx import all_nodes, node_title, operator_set, refuse

if TYPE_CHECKING:
    import onnx

#: most elements of a float tensor that may determine another one's shape
_SMALL = 1024
#: ranks of operands that ONNX's inference leaves unchecked; None for any
_RANKS: dict[str, tuple[int | None, ...]] = {
    "Compress": (None, 1),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), (3, 3, 3, 2, 1, 3, 3, 2)),
}
#: places of the weights of convolutions, whose groups inference leaves unchecked
_FILTERS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
#: attributes of a Constant with numbers, and their dtypes; None for a tensor, which has its own
_CONSTANTS: dict[str, type | None] = {"value": None} | {
    f"value_{kind}{end}": dtype for kind, dtype in (("int", np.int64), ("float", np.float32)) for end in ("", "s")
}
_CHECKED = frozenset({*_RANKS, *_FILTERS, "Transpose"})


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Infer the types of all values of `model` anew from its inputs, in place; return it.

    Declared result shapes are forgotten. Raises ModelError with ONNX's own words if a node contradicts its inputs.
    """
    fresh = without_values(model)
    del fresh.graph.value_info[:]
    given = {value.name for value in fresh.graph.input}
    for value in fresh.graph.output:
        if value.name not in given and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    found = _infer(fresh, check_type=True, strict_mode=True)
    types = {value.name: value.type for value in found.graph.output if value.type.tensor_type.HasField("shape")}
    for value in found.graph.output:  # of two outputs of one name, ONNX types one
        if value.name in types:
            value.type.CopyFrom(types[value.name])
    _check_operands(_write_types(model, found))
    return model


def _check_operands(model: onnx.ModelProto) -> None:
    """Refuse the first node with operands of wrong ranks or channels, if inference passed them. Raises ModelError."""
    nodes = [node for node in model.graph.node if node.op_type in _CHECKED]
    types = value_types(model.graph) if nodes else {}
    for node in nodes:
        fits = _groups_fit if node.op_type in _FILTERS else _ranks_fit
        if not fits(node, types):
            raise _wrong_form(node, types)


def _ranks_fit(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> bool:
    """Return whether the operands have the ranks that their operator takes, as far as they are known."""
    order = [len(each.ints) for each in node.attribute if each.name == "perm"]
    for name, rank in zip(node.input, _RANKS.get(node.op_type, order)):
        kind = types[name].tensor_type if name in types else None
        if kind is not None and kind.HasField("shape") and rank not in (None, len(kind.shape.dim)):
            return False
    return True


def _groups_fit(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> bool:
    """Return whether the groups of a convolution have the channels of its weights, as far as they are known."""
    groups = next((each.i for each in node.attribute if each.name == "group"), 1)
    names = node.input[0], node.input[_FILTERS[node.op_type]]
    x, w = (static_shape(types[name]) if name in types else None for name in names)
    return not (x and w and len(x) == len(w) > 1) or (x[1] == w[1] * groups and w[0] % groups == 0)


def check_nodes(model: onnx.ModelProto) -> None:
    """Check a model by ONNX's checker, without the values of large weights.

    Raises `ValidationError` of the checker, or RuntimeError.
    """
    from onnx import checker, helper

    light = without_values(model)
    initializers = light.graph.initializer
    for place in reversed(range(len(initializers))):
        tensor = initializers[place]
        if not _may_be_shape(tensor):
            light.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
            del initializers[place]
    checker.check_model(light)


def infer_copy(model: onnx.ModelProto, **options: bool) -> onnx.ModelProto:
    """Return a copy with inferred types, with the values of shapes if possible: ONNX takes some float vectors for shapes, and fails.

    Raises `inference_failures`.
    """
    from onnx import shape_inference

    try:
        return shape_inference.infer_shapes(model, data_prop=True, **options)
    except inference_failures():
        return shape_inference.infer_shapes(model, **options)


def _infer(model: onnx.ModelProto, **options: bool) -> onnx.ModelProto:
    try:
        return infer_copy(model, **options)
    except inference_failures() as error:
        raise _disagreement(model) from error


def inference_failures() -> tuple[type[Exception], ...]:
    """Return the errors of ONNX's inference."""
    from onnx import shape_inference

    return shape_inference.InferenceError, RuntimeError, ValueError


def _disagreement(model: onnx.ModelProto) -> ModelError:
    """Name the node at which inference fails, with its form, or the dtype that its operator set has not."""
    from onnx import shape_inference

    from .node_form import first_refused, foreign_dtype

    node = first_refused(
        model, partial(shape_inference.infer_shapes, check_type=True, strict_mode=True), inference_failures()
    )
    if node is None:
        return _shapes_disagree("its outputs are declared otherwise than its nodes make them")
    try:
        types = value_types(shape_inference.infer_shapes(model).graph)
    except inference_failures():
        types = value_types(model.graph)
    opset = operator_set(model.opset_import)
    if found := foreign_dtype(node, types, opset):
        dtype, step = found
        return ModelError(f"The {node_title(node)} takes no {dtype} in operator set {opset}.", step)
    return _wrong_form(node, types)


def _wrong_form(node: onnx.NodeProto, types: dict[str, onnx.TypeProto]) -> ModelError:
    from .node_form import form_of

    return _shapes_disagree(f"the {node_title(node)} does not take {form_of(node, types)}")


def _shapes_disagree(what: str) -> ModelError:
    return ModelError(f"The shapes of the model do not agree: {what}.", "Check the shapes given.")


def infer_what_is_open(model: onnx.ModelProto) -> onnx.ModelProto:
    """Infer the types of undeclared values of `model` as far as ONNX can, in place; return it.

    Raises ModelError if a node is not what its operator set defines.
    """
    return _write_types(model, _infer(without_values(model)))


def without_values(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy `model` without the values of large weights.

    Inference reads none of them, and takes seconds to pass them around.
    """
    copy = type(model)()
    for field, value in model.ListFields():
        if field.name != "graph":
            copy_field(copy, field.name, value)
    for field, value in model.graph.ListFields():
        if field.name != "initializer":
            copy_field(copy.graph, field.name, value)
    for tensor in model.graph.initializer:
        if _may_be_shape(tensor):
            copy.graph.initializer.add().CopyFrom(tensor)
        else:
            copy.graph.initializer.add(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)
    return copy


def _may_be_shape(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type in (tensor.INT32, tensor.INT64) or math.prod(tensor.dims) <= _SMALL


def _write_types(model: onnx.ModelProto, inferred: onnx.ModelProto) -> onnx.ModelProto:
    """Write the inferred nodes and types into `model`; return it.

    `inferred` was made of it without values: the weights stay in `model`.
    """
    for field in ("node", "value_info", "output"):
        group = getattr(model.graph, field)
        del group[:]
        group.extend(getattr(inferred.graph, field))
    return model


def write_around_weights(model: onnx.ModelProto, written: onnx.ModelProto) -> onnx.ModelProto:
    """Write all of `written` but its initializers into `model`, in place; return it."""
    for message, other, kept in ((model.graph, written.graph, "initializer"), (model, written, "graph")):
        for field in message.DESCRIPTOR.fields:
            if field.name != kept:
                message.ClearField(field.name)
        for field, value in other.ListFields():
            if field.name != kept:
                copy_field(message, field.name, value)
    model.DiscardUnknownFields()
    return model


def value_types(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """Return the type of every value with a known type, initializers included."""
    from onnx import helper

    types = {value.name: value.type for value in (*graph.value_info, *graph.input, *graph.output)}
    for tensor in graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return types


def constant_tensors(graph: onnx.GraphProto, inside: bool = False) -> dict[str, onnx.TensorProto]:
    """Return the constants of a graph by name: initializers, and numbers of Constant nodes, `inside` of its subgraphs too."""
    nodes = all_nodes(graph) if inside else iter(graph.node)
    nodes = (node for node in nodes if node.op_type == "Constant" and node.output)
    made = {node.output[0]: _tensor(each) for node in nodes for each in node.attribute if each.name in _CONSTANTS}
    return {tensor.name: tensor for tensor in graph.initializer} | made


def _tensor(attribute: onnx.AttributeProto) -> onnx.TensorProto:
    """Return the value of a Constant node by its attribute."""
    from onnx import helper, numpy_helper

    dtype, value = _CONSTANTS[attribute.name], helper.get_attribute_value(attribute)
    return value if dtype is None else numpy_helper.from_array(np.asarray(value, dtype))


def static_shape(type_: onnx.TypeProto) -> tuple[int, ...] | None:
    """Return the shape of a tensor type; None for an open size or rank, or no tensor."""
    if not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return None
    dims = type_.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return None
    return tuple(dim.dim_value for dim in dims)


def refuse_open_shapes(model: onnx.ModelProto, numbers: Mapping[str, str]) -> None:
    """Refuse results without a static shape: raise ModelError for the first node, in order.

    `numbers` are those that decide the shapes of results, by their names, which may be given a bound.
    """
    types = value_types(model.graph)
    for node in model.graph.node:
        for name in node.output:
            if not name:
                continue
            if name in types and not types[name].HasField("tensor_type"):
                refuse(node, f"makes '{name}', which is not a tensor", "Export the model with tensors only.")
            if name not in types or static_shape(types[name]) is None:
                number = numbers.get(name)
                bound = (
                    f"Give '{number}', on which it depends, a bound (--bound {number}=N), freeze the input"
                    if number
                    else ""
                )
                raise ModelError(
                    f"The shape of '{name}', made by {node_title(node)}, is not known before the model runs.",
                    f"{bound or 'Freeze the input it depends on'} (--fix), or cut the model before this node.",
                )
            if 0 in (static_shape(types[name]) or ()) and node.op_type != "Identity":  # empty_tensors.py keeps outputs
                raise ModelError(
                    f"'{name}', made by {node_title(node)}, has no elements.", "Remove it before exporting the model."
                )
