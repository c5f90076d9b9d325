"""Count the iterations of a Loop whose condition depends on constants and counters alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..folding.evaluate import evaluator
from ..read_onnx import all_nodes
from ..shapes import constant_tensors

if TYPE_CHECKING:
    import onnx


def complete_loops(model: onnx.ModelProto) -> None:
    """Write Loops as ONNX's shape inference takes them, in place: no negative trip count, and a condition always.

    It reserves memory by the count, and by the number of operands less two.
    """
    from onnx import numpy_helper

    constants = constant_tensors(model.graph)

    def name_of(value: np.ndarray, name: str) -> str:
        if name not in constants:
            constants[name] = numpy_helper.from_array(value, name)
            model.graph.initializer.append(constants[name])
        return name

    for node in all_nodes(model.graph):
        if node.op_type != "Loop":
            continue
        limit = constants.get(node.input[0]) if node.input else None
        if limit is not None and (numpy_helper.to_array(limit) < 0).all():
            node.input[0] = name_of(np.asarray(0, np.int64), "Loop/no_iteration")
        if not any(node.input[1:2]):
            first = node.input[:1] or [""]
            node.input[:] = [*first, name_of(np.asarray(True), "Loop/always"), *node.input[2:]]


def trip_count(
    node: onnx.NodeProto, body: onnx.GraphProto, constants: Mapping[str, np.ndarray], most: int, opset: int
) -> int | None:
    """Return the iterations of a Loop; `most` + 1 if there are more than `most`, None if they depend on data.

    The part of the body that the condition depends on runs alone, iteration by iteration.
    """
    from onnx import helper, numpy_helper

    limit, condition, *starts = node.input
    if (limit in constants and constants[limit].item() <= 0) or (
        condition in constants and not constants[condition].item()
    ):
        return 0
    if (limit and limit not in constants) or condition not in constants:
        return None
    bound = min(most + 1, int(constants[limit].item())) if limit else most + 1
    number, going, *carried = (value.name for value in body.input)
    results = [value.name for value in body.output]
    if results[0] == going:
        return bound
    updates = dict(zip(carried, results[1:]))
    nodes, read = _slice(body, results[0], updates)
    states = {name: start for name, start in zip(carried, starts) if name in read}
    own = {tensor.name for tensor in body.initializer} | {name for each in nodes for name in each.output}
    outer = read - own - {number, going} - set(states)
    if not outer | set(states.values()) <= set(constants):
        return None
    starting = {
        number: np.zeros((), np.int64),
        going: np.ones((), np.bool_),
        **{name: constants[start] for name, start in states.items()},
    }
    read |= {results[0]}
    given = [_port(name, value) for name, value in starting.items() if name in read]
    fixed = [*body.initializer, *(numpy_helper.from_array(constants[name], name) for name in sorted(outer))]
    made = [results[0], *(updates[name] for name in states)]
    graph = helper.make_graph(
        nodes, "condition", given, [helper.make_empty_tensor_value_info(name) for name in made], fixed
    )
    run = evaluator(graph, opset)
    if isinstance(run, str):
        return None
    values: list[np.ndarray] = [starting[going], *(constants[start] for start in states.values())]
    for iteration in range(bound):
        here = {number: np.asarray(iteration, np.int64), going: values[0], **dict(zip(states, values[1:]))}
        found = run({value.name: here[value.name] for value in given})
        if isinstance(found, str):
            return None
        values = found
        if not values[0].item():
            return iteration + 1
    return bound


def implied_limit(
    node: onnx.NodeProto, body: onnx.GraphProto, constants: Mapping[str, np.ndarray], most: int, opset: int
) -> int | None:
    """Return the most iterations of a Loop by one of the conditions that must all hold; None if each depends on data.

    `while place < 12 and word != end` ends after 12 iterations, whatever the words are.
    """
    alone, flat = type(node)(), type(body)()
    alone.CopyFrom(node)
    flat.CopyFrom(body)
    alone.input[0], alone.input[1] = "", "Loop/always"
    known = {**constants, "Loop/always": np.asarray(True)}
    found = []
    for part in _required(flat, flat.output[0].name, known):
        flat.output[0].name = part
        found.append(trip_count(alone, flat, known, most, opset))
    return min((count for count in found if count is not None and count <= most), default=None)


def _required(body: onnx.GraphProto, name: str, constants: Mapping[str, np.ndarray]) -> list[str]:
    """List the values that hold wherever `name` does; of an If that is false otherwise, the branch is added to `body`."""
    node = next((each for each in body.node if name in each.output), None)
    if node is None or node.op_type not in ("And", "Cast", "Identity", "If", "Reshape", "Squeeze"):
        return [name]
    if node.op_type != "If":
        return [
            part
            for each in node.input[: 2 if node.op_type == "And" else 1]
            for part in _required(body, each, constants)
        ]
    branches = {each.name: each.g for each in node.attribute}
    then, other = branches["then_branch"], branches["else_branch"]
    if not _is_false(other, constants):
        return [name]
    body.node.extend(then.node)
    body.initializer.extend(then.initializer)
    return [part for each in (node.input[0], then.output[0].name) for part in _required(body, each, constants)]


def _is_false(branch: onnx.GraphProto, constants: Mapping[str, np.ndarray]) -> bool:
    """Return whether a branch gives a constant, which is false."""
    from onnx import numpy_helper

    name, values = branch.output[0].name, {each.name: numpy_helper.to_array(each) for each in branch.initializer}
    for node in reversed(branch.node):
        if name in node.output and node.op_type == "Identity":
            name = node.input[0]
        elif name in node.output and node.op_type == "Constant":
            values.update((name, numpy_helper.to_array(each.t)) for each in node.attribute if each.name == "value")
    value = values.get(name, constants.get(name))
    return value is not None and not value.any()


def _port(name: str, value: np.ndarray) -> onnx.ValueInfoProto:
    from onnx import helper

    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)


def _slice(body: onnx.GraphProto, condition: str, updates: Mapping[str, str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes that the condition depends on, over all iterations, and the names they read."""
    read, chosen, size = {condition}, [], -1
    while size != len(read):
        size = len(read)
        read |= {updates[name] for name in read if name in updates}
        chosen = [node for node in body.node if read & set(node.output)]
        for node in chosen:
            read |= set(filter(None, node.input))
            read |= {name for attribute in node.attribute for inner in attribute.g.node for name in inner.input}
    return chosen, read
