"""Compute the literature's metric on the ONNX file as given.

The metric is: inputs some node reads + initialisers + every node's outputs. A canonical model has lost the folded
nodes, so the figures of the original file travel with it, in its metadata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ...errors import ModelError
from ...memory.footprint import Start
from ..source.import_options import ImportOptions
from .opset import declare_sets
from .ports.apply import bind_ports
from .ports.values import dtype_of
from .read_onnx import add_metadata, metadata_of
from .shapes import infer_what_is_open, static_shape, value_types

if TYPE_CHECKING:
    import onnx

_SUM, _KERNELS = "passfit.start.sum", "passfit.start.kernels"


def mark_start(canonical: onnx.ModelProto, start: Start) -> None:
    """Write `start` into the metadata of a canonical model."""
    add_metadata(canonical, {_SUM: str(start.sum), _KERNELS: str(start.kernels)})


def is_marked(metadata: Mapping[str, str]) -> bool:
    """Return whether the metadata of a model comes from an import: it holds the origin's figures."""
    return metadata.get(_SUM, "").isdigit() and metadata.get(_KERNELS, "").isdigit()


def start_of(model: onnx.ModelProto, options: ImportOptions = ImportOptions()) -> Start:
    """Return the metric of a file with the choices of an import; of a canonical model, its origin's.

    `model` was read from it, and is changed; values of large weights are not needed. Values without an inferred shape
    (ONNX leaves some shape arithmetic open) count 0 bytes.
    """
    kept = metadata_of(model)
    if is_marked(kept):
        return Start(sum=int(kept[_SUM]), kernels=int(kept[_KERNELS]))
    declare_sets(model)
    bind_ports(model, options)
    with suppress(ModelError):
        infer_what_is_open(model)
    graph = model.graph
    types = value_types(graph)
    given = {tensor.name for tensor in graph.initializer}
    read = {name for node in graph.node for name in node.input}
    names = [value.name for value in graph.input if value.name in read and value.name not in given]
    names += [name for node in graph.node for name in node.output if name]
    constants = sum(_bytes_of(tensor.dims, tensor.data_type) for tensor in graph.initializer)
    return Start(constants + sum(tensor_bytes(types.get(name)) for name in names), len(graph.node))


def tensor_bytes(kind: onnx.TypeProto | None, unknown: int = 0) -> int:
    """Return the bytes of a tensor type; 0 without a static shape, and `unknown` for an element of no dtype of numbers."""
    shape = None if kind is None else static_shape(kind)
    return 0 if kind is None or shape is None else _bytes_of(shape, kind.tensor_type.elem_type, unknown)


def _bytes_of(shape: Sequence[int], number: int, unknown: int = 0) -> int:
    from onnx import helper

    return math.prod(shape) * (helper.tensor_dtype_to_np_dtype(number).itemsize if dtype_of(number) else unknown)
