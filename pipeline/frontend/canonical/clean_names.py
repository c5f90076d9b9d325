"""Give every node a unique name, and drop clutter that says nothing about the computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..source.keep_outputs import drop_unneeded
from .node_builder import Names, replace_nodes
from .read_onnx import all_nodes
from .shapes import constant_tensors

if TYPE_CHECKING:
    import onnx


def name_unnamed(model: onnx.ModelProto) -> None:
    """Name every unnamed node `<OpType>_<index>`, by its place in the file, in place."""
    for index, node in enumerate(all_nodes(model.graph)):
        node.name = node.name or f"{node.op_type}_{index}"


def name_nodes(model: onnx.ModelProto) -> None:
    """Give nodes unique names, in place, and remove comments, metadata and names of tools.

    The second of two equal names gets its index appended.
    """
    for field in model.DESCRIPTOR.fields:
        if field.name not in ("ir_version", "opset_import", "graph"):
            model.ClearField(field.name)
    graph = model.graph
    graph.name = "main"
    graph.ClearField("doc_string")
    graph.ClearField("metadata_props")
    graph.value_info.sort(key=lambda value: value.name)
    used: set[str] = set()
    for index, node in enumerate(graph.node):
        node.name = node.name if node.name not in used else f"{node.name}_{index}"
        used.add(node.name)
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
    for item in (*graph.value_info, *graph.input, *graph.output, *graph.initializer):
        item.ClearField("doc_string")
        item.ClearField("metadata_props")


def type_direct_outputs(model: onnx.ModelProto) -> None:
    """Declare an output that is an input or a constant as that is declared, in place.

    Libraries keep one type for the two.
    """
    from onnx import helper

    types = {value.name: value.type for value in model.graph.input}
    for tensor in model.graph.initializer:
        types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    for value in model.graph.output:
        if value.name in types:
            value.type.CopyFrom(types[value.name])


def port_names(model: onnx.ModelProto) -> tuple[list[str], list[str]]:
    """Return the names of inputs and outputs, in order."""
    return [value.name for value in free_inputs(model)], [value.name for value in model.graph.output]


def free_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs without the constants that old files list as inputs."""
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def restore_ports(model: onnx.ModelProto, inputs: list[str], outputs: list[str]) -> None:
    """Give inputs and outputs these names again, by position, in place.

    Folding makes one value of two that are equal, and tells ports apart by new names. An output with the name of an
    input is that input, and two outputs of one name are one value.
    """
    graph = model.graph
    new = dict(zip((value.name for value in graph.input), inputs, strict=True))
    for value, name in zip(graph.output, outputs, strict=True):
        if name not in new.values():
            new.setdefault(value.name, name)
    if all(old == name for old, name in new.items()) and [value.name for value in graph.output] == outputs:
        return
    ports = set(new.values())
    names = Names(graph, ports)
    for name in (*(each.name for each in graph.initializer), *(name for node in graph.node for name in node.output)):
        if name in ports and name not in new:
            new[name] = names.new(f"{name}/inner")
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for item in (*graph.input, *graph.initializer, *graph.value_info):
        item.name = new.get(item.name, item.name)
    for value, name in zip(graph.output, outputs, strict=True):
        value.name = name
    drop_unneeded(graph)


def detach_outputs(model: onnx.ModelProto) -> None:
    """Make, in place, each output that folding left a constant by an Identity node.

    The node reads an initializer. ONNX wants outputs to be results of nodes; only then are their shapes inferred.
    """
    from onnx import helper

    graph, constants = model.graph, constant_tensors(model.graph)
    nodes = [node for node in graph.node if node.op_type != "Constant"]
    for name in (node.output[0] for node in graph.node if node.op_type == "Constant"):
        graph.initializer.append(constants[name])
        graph.initializer[-1].name = name
    outputs = {value.name for value in graph.output}
    others, names = {tensor.name: tensor for tensor in graph.initializer}, Names(graph)
    for tensor in [tensor for tensor in graph.initializer if tensor.name in outputs]:
        name, constant = tensor.name, f"{tensor.name}/constant"
        if constant in others and _same(others[constant], tensor):  # detached by an earlier import
            graph.initializer.remove(tensor)
        else:
            tensor.name = constant = names.new(constant)
            others[constant] = tensor
        for node in nodes:
            node.input[:] = [constant if each == name else each for each in node.input]
        nodes.append(helper.make_node("Identity", [constant], [name], name=names.new(f"Identity/{name}")))
    nodes = [type(node).FromString(node.SerializeToString()) for node in nodes]
    replace_nodes(graph, nodes)


def _same(one: onnx.TensorProto, other: onnx.TensorProto) -> bool:
    """Return whether two constants have one dtype, one shape and the same bytes."""
    from onnx import numpy_helper

    alike = one.data_type == other.data_type and list(one.dims) == list(other.dims)
    return alike and numpy_helper.to_array(one).tobytes() == numpy_helper.to_array(other).tobytes()
