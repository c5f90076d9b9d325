"""Look up the known facts of a file before it runs: constants, shapes and dtypes, as far as ONNX can infer them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...frontend.canonical.graph_context import Values
from ...frontend.canonical.node_builder import inner_graphs
from ...frontend.canonical.ports.values import dtype_of
from ...frontend.canonical.read_onnx import declare_set, operator_set
from ...frontend.canonical.shapes import (
    constant_tensors,
    infer_copy,
    inference_failures,
    value_types,
    without_values,
)
from ...frontend.refuse.importer_limits import DTYPES

if TYPE_CHECKING:
    import onnx

#: most elements of a constant that is read
_MOST = 1 << 20


def known_values(model: onnx.ModelProto) -> tuple[onnx.GraphProto, Values]:
    """Return the graph of a model, with its own functions inlined, and its values, those of subgraphs too; names differ.

    Weights are not copied. ONNX's inference fails on files that ONNX Runtime runs: then types are those declared.
    """
    from onnx import inliner

    light, version = without_values(model), operator_set(model.opset_import)
    if light.functions:
        for function in light.functions:  # as ONNX Runtime reads them
            declare_set(function.opset_import, version)
        light = inliner.inline_local_functions(light)
    try:
        light = infer_copy(light)
    except inference_failures():
        pass
    graphs = list(_all_graphs(light.graph))
    types = {name: kind for graph in graphs for name, kind in value_types(graph).items()}
    tensors = {name: tensor for graph in graphs for name, tensor in constant_tensors(graph).items()}
    tensors |= {tensor.name: tensor for tensor in model.graph.initializer}
    constants = {name: tensor for name, tensor in tensors.items() if _is_read(tensor)}
    for node in (node for graph in graphs for node in graph.node):
        if node.op_type == "Identity" and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
    return light.graph, Values(types, constants, version)


def _all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and the graphs within its nodes."""
    yield graph
    for node in graph.node:
        for body in inner_graphs(node):
            yield from _all_graphs(body)


def _is_read(tensor: onnx.TensorProto) -> bool:
    """Return whether a constant holds few numbers, within the file."""
    few = math.prod(tensor.dims) < _MOST and tensor.data_location != tensor.EXTERNAL
    return few and dtype_of(tensor.data_type) in DTYPES
