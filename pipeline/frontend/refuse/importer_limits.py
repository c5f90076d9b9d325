"""Refuse by name forms of supported operators that TVM 0.27 misreads, or cannot read.

Each was found by running ONNX's own operator tests through the compiler (tests/frontend/onnx_nodes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelError
from ..canonical.graph_context import Context, context_of
from ..canonical.node_builder import attributes_of
from ..canonical.ports.values import NARROW, NARROW_WEIGHTS, dtype_of
from ..canonical.read_onnx import node_title

if TYPE_CHECKING:
    import onnx

#: dtypes of both the compiler and ONNX Runtime, in words of NumPy
DTYPES = frozenset(
    ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
)
#: operators of numbers of few bits
_CODES = frozenset({"BitCast", "Cast", "DequantizeLinear"})
#: integers that ONNX Runtime interpolates
_RESIZED = frozenset(("int8", "int32", "uint8"))

#: returns the reason to refuse a node, or None
Limit = Callable[["onnx.NodeProto", dict[str, Any], Context], "str | None"]


def refuse_wrong_forms(model: onnx.ModelProto) -> None:
    """Refuse dtypes and operator forms that TVM would miscompute: raise ModelError for the first."""
    _refuse_dtypes(model)
    context = context_of(model)
    for node in model.graph.node:
        limit = LIMITS.get(node.op_type)
        why = limit(node, attributes_of(node), context) if limit else None
        if why:
            raise ModelError(f"The {node_title(node)} cannot be compiled: {why}.", "Export the model without it.")


def _refuse_dtypes(model: onnx.ModelProto) -> None:
    from onnx import TensorProto

    graph = model.graph
    values = (*graph.input, *graph.value_info, *graph.output)
    for value in (*graph.input, *graph.output):
        if (kind := value.type.WhichOneof("value")) not in (None, "tensor_type"):
            raise ModelError(
                f"'{value.name}' is a {kind.removesuffix('_type')}, which no C library takes or returns.",
                "Export the model with tensors alone, or choose outputs by --output.",
            )
    found = [(value.name, value.type.tensor_type.elem_type) for value in values]
    found += [(tensor.name, tensor.data_type) for tensor in graph.initializer]
    # casts encode and decode numbers of few bits; kernels unpack weights of 4 as they dequantise them
    computed = {name for node in graph.node if node.op_type not in _CODES for name in (*node.input, *node.output)}
    unpacked = {
        name for node in graph.node if node.op_type == "DequantizeLinear" for name in (node.input[0], *node.input[2:])
    }
    found = [
        (name, number)
        for name, number in found
        if name in computed
        or dtype_of(number) not in NARROW
        or (name in unpacked and dtype_of(number) not in NARROW_WEIGHTS)
    ]
    for name, number in found:
        if number == TensorProto.STRING:
            raise ModelError(
                f"'{name}' holds strings, which cannot be compiled.", "Export the model without text processing."
            )
        if dtype_of(number) not in DTYPES:
            raise ModelError(
                f"'{name}' holds {TensorProto.DataType.Name(number).lower()} numbers, which cannot be compiled.",
                "Export the model in float32.",
            )


def _batch_normalization(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    return "it is in training mode" if attributes.get("training_mode", 0) else None


def _dropout(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    training = context.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(())
    return "it is, or may be, in training mode" if training is None or training.any() else None


def _gather(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    indices, shape = context.constant(node.input[1]), context.shape(node.input[0])
    if indices is None or not shape:
        return None
    size = shape[attributes.get("axis", 0)]
    return f"its indices are not from {-size} to {size - 1}" if ((indices < -size) | (indices >= size)).any() else None


def _gemm(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    whole = all(float(attributes.get(name, 1.0)).is_integer() for name in ("alpha", "beta"))
    return None if whole or context.dtype(node.input[0]).kind == "f" else "it scales integers by a fraction"


def _grid_sample(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    return (
        None
        if context.dtype(node.input[0]).kind == "f"
        else "it samples other numbers than floats, which ONNX Runtime does not"
    )


def _resize(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    mode, dtype = attributes.get("coordinate_transformation_mode", "half_pixel"), context.dtype(node.input[0])
    if dtype.kind != "f" and attributes.get("mode", "nearest") != "nearest" and dtype.name not in _RESIZED:
        return f"it interpolates {dtype.name} numbers, which ONNX Runtime does not"
    if attributes.get("antialias"):
        return "it smooths while it shrinks (antialias)"
    if "axes" in attributes or len(node.input) < 4 or not node.input[3]:
        # TVM takes the scale to be new size / old size; if that holds, canonical/rewrites.py gave it the sizes.
        return "its scales do not give whole sizes, or are not constant"
    if mode == "half_pixel_symmetric" or attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "its scales do not give whole sizes"
    before, after = (context.shape(name) or () for name in (node.input[0], node.output[0]))
    if len(before) not in (3, 4, 5) or before[:2] != after[:2]:
        return "it resizes something else than the last one to three of three to five dimensions"
    if mode == "tf_crop_and_resize" and 1 in after[2:]:
        return "it crops to a single element along an axis"
    return None


def _roi_align(node: onnx.NodeProto, attributes: dict[str, Any], context: Context) -> str | None:
    return "it takes the largest value (mode 'max')" if attributes.get("mode") == "max" else None


LIMITS: dict[str, Limit] = {
    "BatchNormalization": _batch_normalization,
    "Dropout": _dropout,
    "Gather": _gather,
    "GatherElements": _gather,
    "Gemm": _gemm,
    "GridSample": _grid_sample,
    "Resize": _resize,
    "RoiAlign": _roi_align,
}
