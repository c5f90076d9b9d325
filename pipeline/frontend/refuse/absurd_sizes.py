"""Refuse tensors and ranges too large for any machine, before anything computes with their sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...errors import ModelError
from ..canonical.read_onnx import CONSTANT_LIMIT, all_nodes, refuse
from ..canonical.shapes import constant_tensors, value_types
from ..canonical.static_metric import tensor_bytes
from ..source.keep_outputs import reads

if TYPE_CHECKING:
    import onnx

#: bytes of an input or output at most: static data of a program are addressed by signed 32-bit offsets
PORT_LIMIT = (1 << 31) - 1
#: bytes of any other tensor at most: fusion may remove it, but two processes hold it, and copies of it, for the comparison
TENSOR_LIMIT = 1 << 31
_SMALLER = "Give smaller shapes (--shape), or cut the model into parts."


def refuse_large_tensors(model: onnx.ModelProto) -> None:
    """Refuse a tensor of static shape over its limit: raise ModelError for the first."""
    graph = model.graph
    words = {name: "constant" for name in _computed(graph)} | {value.name: "output" for value in graph.output}
    words |= {value.name: "input" for value in graph.input}
    limits = {"constant": CONSTANT_LIMIT, "tensor": TENSOR_LIMIT}
    for name, kind in value_types(graph).items():
        nbytes, word = tensor_bytes(kind, unknown=1), words.get(name, "tensor")
        limit = limits.get(word, PORT_LIMIT)
        if nbytes > limit:
            raise ModelError(
                f"The {word} '{name}' takes {_gibibytes(nbytes)}; {_gibibytes(limit)} is the most.", _SMALLER
            )


def _computed(graph: onnx.GraphProto) -> set[str]:
    """Return the values that nodes make of constants alone."""
    constants, found = {tensor.name for tensor in graph.initializer}, set[str]()
    for node in graph.node:  # sorted
        if all(name in constants or name in found for name in reads(node)):
            found.update(filter(None, node.output))
    return found


def refuse_long_ranges(model: onnx.ModelProto) -> None:
    """Refuse a Range of constants over the limit: raise ModelError for the first.

    ONNX's shape inference would write it all out.
    """
    scalars = dict(_scalars(model.graph))
    for node in all_nodes(model.graph):
        if node.op_type != "Range" or not all(name in scalars for name in node.input):
            continue
        start, limit, delta = (scalars[name] for name in node.input)
        if delta and (limit - start) / delta * 8 > CONSTANT_LIMIT:
            refuse(node, f"makes more than {_gibibytes(CONSTANT_LIMIT)} of numbers", _SMALLER)


def _scalars(graph: onnx.GraphProto) -> Iterator[tuple[str, float]]:
    """Yield the (name, value) of every constant that is one number."""
    from onnx import numpy_helper

    for name, tensor in constant_tensors(graph).items():
        if math.prod(tensor.dims) == 1 and tensor.ByteSize() < 256 and not tensor.external_data:
            try:
                yield name, float(numpy_helper.to_array(tensor).reshape(()))
            except (ValueError, TypeError):
                continue  # text, or no data: its reader is refused by name


def _gibibytes(nbytes: int) -> str:
    gibibytes = nbytes >> 30
    return f"{nbytes / (1 << 30):.3g} GiB" if gibibytes < 1 << 62 else "more than 2^62 GiB"
