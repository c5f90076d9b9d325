"""Compute both branches of an `If` with a run-time condition, and select one result.

    If(c){then: f(x)} {else: g(x)}  ──►  Where(c, f(x), g(x))

ONNX operators have no side effects, so the unused branch costs time and memory but changes nothing. A compiled library
runs the same kernels in the same order every time, as a planned arena needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ....errors import ModelError
from ..node_builder import Names
from ..read_onnx import node_title, operator_set
from ..shapes import infer_shapes, infer_what_is_open, static_shape, value_types

if TYPE_CHECKING:
    import onnx


#: the operator set of Where
_FIRST_WHERE = 9


def select_branches(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each `If` by both branches and a selection.

    Raises ModelError, naming the node, if the branches' results differ in shape.
    """
    pairs: list[tuple[onnx.NodeProto, str, str]] = []
    opset, names = operator_set(model.opset_import), Names(model.graph)
    while any(node.op_type == "If" for node in model.graph.node):
        if opset < _FIRST_WHERE:
            node = next(each for each in model.graph.node if each.op_type == "If")
            raise ModelError(
                f"The {node_title(node)} cannot be compiled: its condition is not constant, and operator set {opset} selects no values.",
                f"Export the model with operator set {_FIRST_WHERE} or newer.",
            )
        nodes = list(model.graph.node)
        del model.graph.node[:]
        for index, node in enumerate(nodes):
            model.graph.node.extend(
                _select(model.graph, node, index, names.new, pairs) if node.op_type == "If" else [node]
            )
    if not pairs:
        return model
    types = value_types(infer_what_is_open(model).graph)
    for node, then, other in pairs:
        shapes = [static_shape(types[name]) if name in types else None for name in (then, other)]
        if None in shapes or shapes[0] != shapes[1]:
            raise ModelError(
                f"The branches of {node_title(node)} give different shapes, and its condition is not constant.",
                "Freeze the input the condition depends on (--fix), or export the model without the branch.",
            )
    return infer_shapes(model)


def _select(
    graph: onnx.GraphProto, node: onnx.NodeProto, index: int, new: Callable[[str], str],
    pairs: list[tuple[onnx.NodeProto, str, str]],
) -> list[onnx.NodeProto]:  # fmt: skip
    """Return the nodes in the place of an `If`, with `new` names; add its constants to `graph`, its results to `pairs`."""
    from onnx import TensorProto, helper

    bodies = {attribute.name: attribute.g for attribute in node.attribute}
    stem = node.name or f"If_{index}"
    scalar = helper.make_tensor(new(f"{stem}/scalar"), TensorProto.INT64, [0], [])
    condition = new(f"{stem}/condition")
    graph.initializer.append(scalar)
    made = [helper.make_node("Reshape", [node.input[0], scalar.name], [condition], name=condition)]
    results = []
    for branch in ("then_branch", "else_branch"):
        body, prefix = bodies[branch], f"{stem}/{branch.partition('_')[0]}/"
        inside = [tensor.name for tensor in body.initializer]
        inside += [name for inner in body.node for name in inner.output if name]
        names = {name: new(prefix + name) for name in dict.fromkeys(inside)}
        for tensor in body.initializer:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = names[tensor.name]
        for inner in body.node:
            made.append(rename(inner, names))
            made[-1].name = new(prefix + (inner.name or inner.output[0]))
        results.append([names.get(value.name, value.name) for value in body.output])
    for name, then, other in zip(node.output, *results):
        if name:
            made.append(helper.make_node("Where", [condition, then, other], [name], name=new(f"{stem}/{name}")))
            pairs.append((node, then, other))
    return made


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Copy `node`, its subgraphs included, with values under their new names."""
    import onnx

    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            hidden = {name for inner in attribute.g.node for name in inner.output}
            hidden |= {tensor.name for tensor in attribute.g.initializer}
            visible = {old: new for old, new in names.items() if old not in hidden}
            inner_nodes = [rename(inner, visible) for inner in attribute.g.node]
            del attribute.g.node[:]
            attribute.g.node.extend(inner_nodes)
            for value in attribute.g.output:
                value.name = visible.get(value.name, value.name)
    return copy
