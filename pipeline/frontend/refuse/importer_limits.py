"""Refuse by name forms of supported operators that TVM 0.27 misreads, or cannot read.

Each was found by running ONNX's own operator tests through the compiler (tests/frontend/onnx_nodes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...errors import ModelError
from ..canonical.graph_context import NodeView, context_of
from ..canonical.ports.values import NARROW, NARROW_WEIGHTS, dtype_of
from ..canonical.read_onnx import refuse

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
Limit = Callable[[NodeView], "str | None"]


def refuse_wrong_forms(model: onnx.ModelProto) -> None:
    """Refuse dtypes and operator forms that TVM would miscompute: raise ModelError for the first."""
    _refuse_dtypes(model)
    context = context_of(model)
    for node in model.graph.node:
        limit = LIMITS.get(node.op_type)
        if limit and (why := limit(NodeView(node, context))):
            refuse(node, f"cannot be compiled: {why}", "Export the model without it.")


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


def _dropout(node: NodeView) -> str | None:
    training = node.constant(2) if node.name(2) else np.zeros(())
    return "it is, or may be, in training mode" if training is None or training.any() else None


def _gather(node: NodeView) -> str | None:
    indices, shape = node.constant(1), node.shape(0)
    if indices is None or not shape:
        return None
    size = shape[node.get("axis", 0)]
    return f"its indices are not from {-size} to {size - 1}" if ((indices < -size) | (indices >= size)).any() else None


def _resize(node: NodeView) -> str | None:
    mode, dtype = node.get("coordinate_transformation_mode", "half_pixel"), node.dtype(0)
    if dtype.kind != "f" and node.get("mode", "nearest") != "nearest" and dtype.name not in _RESIZED:
        return f"it interpolates {dtype.name} numbers, which ONNX Runtime does not"
    if node.get("antialias"):
        return "it smooths while it shrinks (antialias)"
    if "axes" in node.attributes or not node.name(3):
        # TVM takes the scale to be new size / old size; if that holds, canonical/rewrites.py gave it the sizes.
        return "its scales do not give whole sizes, or are not constant"
    if mode == "half_pixel_symmetric" or node.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "its scales do not give whole sizes"
    before, after = (node.shape(name) or () for name in (node.input[0], node.result))
    if len(before) not in (3, 4, 5) or before[:2] != after[:2]:
        return "it resizes something else than the last one to three of three to five dimensions"
    if mode == "tf_crop_and_resize" and 1 in after[2:]:
        return "it crops to a single element along an axis"
    return None


def _batch_normalization(node: NodeView) -> str | None:
    return "it is in training mode" if node.get("training_mode", 0) else None


def _gemm(node: NodeView) -> str | None:
    whole = all(float(node.get(name, 1.0)).is_integer() for name in ("alpha", "beta"))
    return None if whole or node.dtype(0).kind == "f" else "it scales integers by a fraction"


def _grid_sample(node: NodeView) -> str | None:
    return None if node.dtype(0).kind == "f" else "it samples other numbers than floats, which ONNX Runtime does not"


def _roi_align(node: NodeView) -> str | None:
    return "it takes the largest value (mode 'max')" if node.get("mode") == "max" else None


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
