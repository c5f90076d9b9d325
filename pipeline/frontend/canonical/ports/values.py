"""Read and write inputs and outputs of a graph: their types, and the names by which nodes read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..bind_shapes import dimensions
from ..node_builder import inner_graphs

if TYPE_CHECKING:
    import onnx

#: dtypes of few bits, by numpy's names, and those that hold their numbers exactly: of inputs, outputs and arithmetic
NARROW = {
    **dict.fromkeys(("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), "float32"),
    "float4_e2m1fn": "float32", "int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8",
}  # fmt: skip
#: those that kernels unpack as they dequantise
NARROW_WEIGHTS = frozenset({"int4", "uint4"})


def widened(numbers: np.ndarray) -> np.ndarray:
    """Return numbers of few bits in the dtype that holds them; others as they are."""
    wide = NARROW.get(numbers.dtype.name)
    return numbers if wide is None else numbers.astype(wide)


def dtype_name(value: onnx.ValueInfoProto) -> str:
    """Return the dtype of a tensor by numpy's name."""
    return dtype_of(value.type.tensor_type.elem_type)


@cache
def dtype_of(number: int) -> str:
    """Return the dtype of ONNX's number of it by numpy's name; "" for texts and numbers that ONNX does not define."""
    from onnx import TensorProto, helper

    known = number in TensorProto.DataType.values() and number not in (TensorProto.UNDEFINED, TensorProto.STRING)
    return np.dtype(helper.tensor_dtype_to_np_dtype(number)).name if known else ""


def elem_type(dtype: str) -> int:
    """Return ONNX's number of a dtype of numpy's."""
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def static_sizes(value: onnx.ValueInfoProto) -> list[int]:
    """Return the sizes of a tensor that are known to be static."""
    return [int(size) for size in dimensions(value) or ()]


def write_type(value: onnx.ValueInfoProto, dtype: str, shape: Sequence[int | str] | None) -> None:
    """Write dtype and shape into a tensor's type, in place; None leaves the shape open."""
    from onnx import helper

    value.type.CopyFrom(helper.make_tensor_type_proto(elem_type(dtype), shape))


def rename_result(graph: onnx.GraphProto, name: str, new: str) -> None:
    """Let the node that makes `name` make `new` instead, and all its readers read that, in place."""
    for node in graph.node:
        for place, each in enumerate(node.output):
            if each == name:
                node.output[place] = new
    rename_reads(graph, name, new)


def rename_reads(graph: onnx.GraphProto, name: str, new: str) -> None:
    """Let every node of `graph`, and of the graphs inside, read `new` instead of `name`, in place."""
    for node in graph.node:
        for place, each in enumerate(node.input):
            if each == name:
                node.input[place] = new
        for inner in inner_graphs(node):
            if name not in {value.name for value in (*inner.input, *inner.initializer)}:
                rename_reads(inner, name, new)
                for value in inner.output:
                    value.name = new if value.name == name else value.name
