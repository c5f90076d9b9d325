"""Names and clutter: every node gets a name of its own, whatever says nothing about the computation goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .reading import all_nodes

if TYPE_CHECKING:
    import onnx


def name_unnamed(model: onnx.ModelProto) -> None:
    """Call every node without a name `<OpType>_<index>`, by its place in the file, in place."""
    for index, node in enumerate(all_nodes(model.graph)):
        node.name = node.name or f"{node.op_type}_{index}"


def name_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of `model` where each node has a name of its own, without comments, metadata and names of tools.

    The second of two equal names gets its index appended.
    """
    clean = type(model)()
    clean.ir_version = model.ir_version
    clean.opset_import.extend(model.opset_import)
    clean.graph.CopyFrom(model.graph)
    graph = clean.graph
    graph.name = "main"
    graph.ClearField("doc_string")
    graph.ClearField("metadata_props")
    del graph.value_info[:]
    graph.value_info.extend(sorted(model.graph.value_info, key=lambda value: value.name))
    used: set[str] = set()
    for index, node in enumerate(graph.node):
        node.name = node.name if node.name not in used else f"{node.name}_{index}"
        used.add(node.name)
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
    for item in (*graph.value_info, *graph.input, *graph.output, *graph.initializer):
        item.ClearField("doc_string")
        item.ClearField("metadata_props")
    return clean


def detach_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of `model` where an output that folding left a constant is made by an Identity node of an initializer.

    ONNX wants outputs to be results of nodes; only then are their shapes inferred.
    """
    from onnx import helper

    result = type(model)()
    result.CopyFrom(model)
    graph = result.graph
    nodes = []
    for node in graph.node:
        if node.op_type == "Constant":
            graph.initializer.append(_tensor(node))
        else:
            nodes.append(node)
    outputs = {value.name for value in graph.output}
    for tensor in graph.initializer:
        if tensor.name in outputs:
            name, tensor.name = tensor.name, f"{tensor.name}/constant"
            for node in nodes:
                node.input[:] = [tensor.name if each == name else each for each in node.input]
            nodes.append(helper.make_node("Identity", [tensor.name], [name], name=f"Identity/{name}"))
    nodes = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def _tensor(constant: onnx.NodeProto) -> onnx.TensorProto:
    """The value of a Constant node, whichever of its attributes holds it, named as the node's result."""
    from onnx import AttributeProto, helper, numpy_helper

    attribute = constant.attribute[0]
    if attribute.type == AttributeProto.TENSOR:
        tensor = type(attribute.t)()
        tensor.CopyFrom(attribute.t)
        tensor.name = constant.output[0]
        return tensor
    dtype = np.float32 if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS) else np.int64
    return numpy_helper.from_array(np.asarray(helper.get_attribute_value(attribute), dtype), constant.output[0])
