"""Compute both branches of an `If` with a run-time condition, and select one result.

    If(c){then: f(x)} {else: g(x)}  ──►  Where(c, f(x), g(x))

ONNX operators have no side effects, so the unused branch costs time and memory but changes nothing. A compiled library
runs the same kernels in the same order every time, as a planned arena needs. An operator that forbids values, such as an
index out of range, gets one it takes where its branch is not taken: Gather(x, i) reads Where(c, i, 0).

Of results that differ along one axis, or one of which is empty, the rows of the branch taken are chosen: torchvision's batched_nms
returns no index where there are no boxes.

    If(c){then: f(x)} {else: g(x)}  ──►  Compress(Concat(f(x), g(x)), [c, …, not c, …])
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

from ....errors import ModelError
from ..graph_context import Values
from ..node_builder import Names, NodeBuilder, replace_nodes, splice
from ..read_onnx import node_title
from ..shapes import constant_tensors, infer_shapes, infer_what_is_open, value_types

if TYPE_CHECKING:
    import onnx


#: by operator, the operands with forbidden integers, and one that is always allowed: positions and shifts of 0, divisors of 1
_POSITIONS = (
    "ArrayFeatureExtractor", "Gather", "GatherBlockQuantized", "GatherElements", "GatherND", "MaxUnpool",
    "NegativeLogLikelihoodLoss", "Scatter", "ScatterElements", "ScatterND", "SoftmaxCrossEntropyLoss",
)  # fmt: skip
_ALLOWED = {name: {1: 0} for name in _POSITIONS} | {
    "Div": {1: 1}, "Mod": {1: 1}, "BitShift": {1: 0}, "RoiAlign": {2: 0}, "TensorScatter": {2: 0},
    "RotaryEmbedding": {1: 0, 3: 0}, "EmbedLayerNormalization": {0: 0, 1: 0, 8: 0}, "QEmbedLayerNormalization": {0: 0, 1: 0},
}  # fmt: skip


def select_branches(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace each `If` by both branches and a selection.

    Raises ModelError, naming the node, if the branches' results differ in shape.
    """
    pairs: list[tuple[onnx.NodeProto, onnx.NodeProto]] = []
    names = Names(model.graph)
    while any(node.op_type == "If" for node in model.graph.node):
        model = infer_what_is_open(model)  # values of the branches that are now outside, too: guards need their dtypes
        nodes = list(model.graph.node)
        del model.graph.node[:]
        for index, node in enumerate(nodes):
            model.graph.node.extend(
                _select(model.graph, node, index, names.new, pairs) if node.op_type == "If" else [node]
            )
    if not pairs:
        return model
    values, made = Values(value_types(infer_what_is_open(model).graph), {}), {}
    places = {node.output[0]: place for place, node in enumerate(model.graph.node) if node.output}
    for node, where in pairs:
        one, other = map(values.shape, where.input[1:])
        if one is not None and one == other:
            continue
        build = made[places[where.output[0]]] = NodeBuilder(where.name, names)
        if not _choose_rows(build, where, values):
            raise ModelError(
                f"The branches of {node_title(node)} give different shapes, and its condition is not constant.",
                "Freeze the input the condition depends on (--fix), or export the model without the branch.",
            )
    splice(model.graph, made)
    return infer_shapes(model)


def _select(
    graph: onnx.GraphProto, node: onnx.NodeProto, index: int, new: Callable[[str], str],
    pairs: list[tuple[onnx.NodeProto, onnx.NodeProto]],
) -> list[onnx.NodeProto]:  # fmt: skip
    """Return the nodes in the place of an `If`, with `new` names; add its constants to `graph`, its results to `pairs`."""
    from onnx import TensorProto, helper

    bodies = {attribute.name: attribute.g for attribute in node.attribute}
    stem = node.name or f"If_{index}"
    scalar = helper.make_tensor(new(f"{stem}/scalar"), TensorProto.INT64, [0], [])
    condition = new(f"{stem}/condition")
    graph.initializer.append(scalar)
    made = [helper.make_node("Reshape", [node.input[0], scalar.name], [condition], name=condition)]
    results, constants = [], constant_tensors(graph, inside=True).keys()
    for branch in ("then_branch", "else_branch"):
        body, prefix = bodies[branch], f"{stem}/{branch.partition('_')[0]}/"
        nodes = list(_guarded(body, condition, branch == "then_branch", value_types(graph), constants, new))
        inside = [tensor.name for tensor in body.initializer]
        inside += [name for inner in nodes for name in inner.output if name]
        names = {name: new(prefix + name) for name in dict.fromkeys(inside)}
        for tensor in body.initializer:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = names[tensor.name]
        for inner in nodes:
            made.append(rename(inner, names))
            made[-1].name = new(prefix + (inner.name or inner.output[0]))
        results.append([names.get(value.name, value.name) for value in body.output])
    for name, then, other in zip(node.output, *results):
        if name:
            made.append(helper.make_node("Where", [condition, then, other], [name], name=new(f"{stem}/{name}")))
            pairs.append((node, made[-1]))
    return made


def _choose_rows(build: NodeBuilder, where: onnx.NodeProto, values: Values) -> bool:
    """Build the rows of the branch taken, for results whose sizes differ along one axis; return whether they do."""
    condition, *results = where.input
    sizes = [values.sizes(name) or () for name in results]
    axes = [axis for axis, pair in enumerate(zip(*sizes)) if pair[0] != pair[1]]
    if len(axes) != 1 or len(sizes[0]) != len(sizes[1]):
        return False
    (axis,) = axes
    taken = [build.node("Reshape", condition, build.integers(1))]
    taken.append(build.node("Not", taken[0]))
    kept = [(name, flag) for name, flag, each in zip(results, taken, sizes) if each[axis] != 0]
    flags = []
    for name, flag in kept:
        count = build.node("Shape", name)
        if len(sizes[0]) > 1:
            count = build.node("Slice", count, build.integers(axis), build.integers(axis + 1))
        flags.append(build.node("Expand", flag, count))
    rows, chosen = kept[0][0], flags[0]
    if len(kept) > 1:
        rows, chosen = build.node("Concat", *results, axis=axis), build.node("Concat", *flags, axis=0)
    build.node("Compress", rows, chosen, result=where.output[0], axis=axis)
    return True


def _guarded(
    body: onnx.GraphProto, condition: str, holds: bool, outer: Mapping[str, onnx.TypeProto], constants: Container[str],
    new: Callable[[str], str],
) -> Iterator[onnx.NodeProto]:  # fmt: skip
    """Yield the nodes of a branch, guarded: their operands are allowed ones unless `condition` is `holds`."""
    from onnx import helper

    values = Values({**outer, **value_types(body)}, {})
    for node in body.node:
        copied = deepcopy(node)
        for attribute in copied.attribute:
            if attribute.HasField("g"):
                inner = list(_guarded(attribute.g, condition, holds, values.types, constants, new))
                replace_nodes(attribute.g, inner)
        for number, allowed in _ALLOWED.get(node.op_type, {}).items():
            name = node.input[number] if number < len(node.input) else ""
            if name in constants or values.dtype(name).kind not in "iu":
                continue
            stem = f"{node.name or node.output[0]}/{number}"
            tensor = helper.make_tensor("", values.element(name), [], [allowed])
            value = helper.make_node("Constant", [], [new(f"{stem}/allowed")], value=tensor)
            choices = [name, value.output[0]] if holds else [value.output[0], name]
            copied.input[number] = new(f"{stem}/guarded")
            yield value
            yield helper.make_node("Where", [condition, *choices], [copied.input[number]], name=copied.input[number])
        yield copied


def rename(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Copy `node`, its subgraphs included, with values under their new names."""
    copy = deepcopy(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for attribute in copy.attribute:
        if attribute.HasField("g"):
            hidden = {name for inner in attribute.g.node for name in inner.output}
            hidden |= {tensor.name for tensor in attribute.g.initializer}
            visible = {old: new for old, new in names.items() if old not in hidden}
            inner_nodes = [rename(inner, visible) for inner in attribute.g.node]
            replace_nodes(attribute.g, inner_nodes)
            for value in attribute.g.output:
                value.name = visible.get(value.name, value.name)
    return copy
