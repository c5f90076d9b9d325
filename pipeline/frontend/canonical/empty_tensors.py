"""Replace tensors without elements by constants: shape and dtype determine them.

    x: float32[0, 3] ──► Relu ──► Concat ──► y          y = Concat(z), and nothing computes on x
                 z: float32[2, 3] ──┘

No kernel reads or writes such a tensor: TVM's schedules divide by extents, and ONNX's reference implementation and
ONNX Runtime disagree on the mean of nothing. A node with a result although its operand has no elements is computed here
by ONNX Runtime if it reads constants alone; else a rule replaces it by nodes without the operand.
"""

from __future__ import annotations

from collections.abc import Set
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from .folding.evaluate import evaluate
from .graph_context import Context, NodeView, Rule, context_of
from .node_builder import NodeBuilder, stem_of
from .read_onnx import refuse

if TYPE_CHECKING:
    import onnx


def replace_empty_tensors(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace the empty tensors of `model` (with inferred shapes) by constants; inputs keep their shapes.

    Raises ModelError for a node on such an operand without a rule, if ONNX Runtime gives no result either.
    """
    context = context_of(model)
    empty = {name for name in context.types if _is_empty(context, name)}
    if not any(_concerns(node, empty, context) for node in model.graph.node):
        return model
    result = deepcopy(model)
    graph = result.graph
    inputs = {value.name for value in graph.input if _is_empty(context, value.name)}
    renamed = {
        name: _empty(graph, context, name, context.names.new(f"{name}/empty"))
        for name in sorted(inputs - context.constants.keys())
    }
    nodes = list(graph.node)
    del graph.node[:]
    for index, node in enumerate(nodes):
        node.input[:] = [renamed.get(name, name) for name in node.input]
        graph.node.extend(_replace(graph, context, node, index))
    return result


def _concerns(node: onnx.NodeProto, empty: Set[str], context: Context) -> bool:
    """Return whether a node makes, or computes with, one of the `empty` values; constants may be shapes, axes and the like."""
    constant = () if node.op_type in _RULES else (name for name in node.input[1:] if name in context.constants)
    return not empty.isdisjoint({*node.input, *node.output}.difference(constant))


def _replace(graph: onnx.GraphProto, context: Context, node: onnx.NodeProto, index: int) -> list[onnx.NodeProto]:
    """Return the nodes in the place of `node`; add constants to `graph` and `context`."""
    results = [name for name in node.output if name]
    if results and all(_is_empty(context, name) for name in results):
        for name in results:
            _empty(graph, context, name, name)
        return []
    build = NodeBuilder(stem_of(node, index), context.names)
    if any(_is_empty(context, name) for name in (*node.input, *results)) and node.op_type in _RULES:
        _RULES[node.op_type](NodeView(node, context), build)
        for tensor in build.initializers:
            _add(graph, context, tensor)
        if build.nodes:
            for name in results:
                if _is_empty(context, name):
                    _empty(graph, context, name, name)
            return build.nodes
    if not node.input or not _is_empty(context, node.input[0]):
        return [node]  # shapes, axes and the like may be empty constants
    if any(name and name not in context.constants for name in node.input) or any(
        a.HasField("g") for a in node.attribute
    ):
        what = f"reads '{node.input[0]}', which has no elements, and cannot be compiled"
        refuse(node, what, "Give the inputs of the model larger shapes, or remove the node before exporting.")
    for tensor in _compute(node, context):
        _add(graph, context, tensor)
    return []


def _is_empty(graph: Context | NodeView, name: str) -> bool:
    return 0 in (graph.shape(name) or ())


def _empty(graph: onnx.GraphProto, context: Context, name: str, called: str) -> str:
    """Add the empty value of `name` as the initializer `called`; return the initializer's name."""
    from onnx import TensorProto, helper

    while called != name and called in context.types:
        called += "_"
    dtype = context.types[name].tensor_type.elem_type
    raw = dtype != TensorProto.STRING  # whose tensors have lists of bytes
    _add(graph, context, helper.make_tensor(called, dtype, context.shape(name), b"" if raw else [], raw))
    return called


def _add(graph: onnx.GraphProto, context: Context, tensor: onnx.TensorProto) -> None:
    """Add an initializer to `graph` and `context`."""
    from onnx import helper

    graph.initializer.append(tensor)
    context.constants[tensor.name] = tensor
    context.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def _compute(node: onnx.NodeProto, context: Context) -> list[onnx.TensorProto]:
    """Compute the results of a node of constants by ONNX Runtime."""
    from onnx import numpy_helper

    names = [name for name in node.output if name]
    values = evaluate(node, [context.constants[name] for name in dict.fromkeys(node.input) if name], context.opset)
    if isinstance(values, str):
        what = f"has no result, since its operand has no elements: {values}"
        refuse(node, what, "Give the inputs of the model larger shapes, or remove the node before exporting.")
    return [numpy_helper.from_array(value, name) for name, value in zip(names, values, strict=True)]


def _concat(node: NodeView, build: NodeBuilder) -> None:
    """Concatenate the operands that have elements."""
    kept = [name for name in node.input if not _is_empty(node, name)]
    if len(kept) > 1:
        build.node("Concat", *kept, result=node.result, **node.attributes)
    else:
        build.node("Identity", *kept, result=node.result)


def _split(node: NodeView, build: NodeBuilder) -> None:
    """Split into the parts that have elements."""
    shapes = {name: shape for name in node.output if name and (shape := node.shape(name)) is not None}
    if len(shapes) < len(node.output):
        return
    axis = int(node.get("axis", 0))
    kept = [name for name in node.output if not _is_empty(node, name)]
    if len(kept) == 1:
        build.node("Identity", node.input[0], result=kept[0])
        return
    sizes = [shapes[name][axis] for name in kept]
    build.many("Split", [node.input[0], build.integers(*sizes)], kept, axis=axis)


def _gemm(node: NodeView, build: NodeBuilder) -> None:
    """Replace the sum of no products and a multiple of the third operand, which may be computed."""
    shape, dtype = node.shape(node.result), node.dtype(node.result)
    if shape is not None and node.name(2):
        zeros, beta = build.constant(np.zeros(shape, dtype)), build.number(node.get("beta", 1.0), dtype)
        build.node("Add", zeros, build.node("Mul", node.input[2], beta), result=node.result)


def _scatter(node: NodeView, build: NodeBuilder) -> None:
    """Return the data unchanged if there are no updates."""
    if _is_empty(node, node.input[2]):
        build.node("Identity", node.input[0], result=node.result)


_RULES: dict[str, Rule] = {
    "Concat": _concat,
    "Gemm": _gemm,
    "Scatter": _scatter,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Split": _split,
}
