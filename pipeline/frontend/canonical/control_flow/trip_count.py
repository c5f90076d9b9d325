"""Count the iterations of a Loop whose condition depends on constants and counters alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnx


def trip_count(
    node: onnx.NodeProto, body: onnx.GraphProto, constants: Mapping[str, np.ndarray], most: int, opset: int
) -> int | None:
    """Return the iterations of a Loop; `most` + 1 if there are more than `most`, None if they depend on data.

    The part of the body that the condition depends on runs alone, iteration by iteration.
    """
    limit, condition, *starts = [*node.input, "", ""] if len(node.input) < 2 else node.input
    if any(name and name not in constants for name in (limit, condition)):
        return None
    bound = min(most + 1, int(constants[limit].item())) if limit else most + 1
    if condition and not constants[condition].item():
        return 0
    number, going, *carried = (value.name for value in body.input)
    results = [value.name for value in body.output]
    if results[0] == going:
        return max(bound, 0)
    updates = dict(zip(carried, results[1:]))
    nodes, read = _slice(body, results[0], updates)
    states = {name: start for name, start in zip(carried, starts) if name in read}
    own = {tensor.name for tensor in body.initializer} | {name for each in nodes for name in each.output}
    outer = read - own - {number, going} - set(states)
    if not outer | set(states.values()) <= set(constants):
        return None
    run = _runner(body, nodes, [results[0], *(updates[name] for name in states)], {name: constants[name] for name in outer}, opset)
    values: list[Any] = [True, *(constants[start] for start in states.values())]
    for iteration in range(bound):
        values = run({number: iteration, going: values[0], **dict(zip(states, values[1:]))})
        if not values[0]:
            return iteration + 1
    return max(bound, 0)


def _slice(
    body: onnx.GraphProto, condition: str, updates: Mapping[str, str]
) -> tuple[list[onnx.NodeProto], set[str]]:
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


def _runner(
    body: onnx.GraphProto, nodes: list[onnx.NodeProto], results: list[str], outer: Mapping[str, np.ndarray], opset: int
) -> Any:
    import numpy as np
    from onnx import ValueInfoProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    given = [value.name for value in body.input]
    outputs = [ValueInfoProto(name=name) for name in results]
    constants = [*body.initializer, *(numpy_helper.from_array(value, name) for name, value in outer.items())]
    graph = helper.make_graph(nodes, "condition", [ValueInfoProto(name=name) for name in given], outputs, constants)
    evaluator = ReferenceEvaluator(graph, opsets={"": opset})

    def run(values: Mapping[str, object]) -> list[Any]:
        types = {given[0]: np.int64, given[1]: np.bool_}
        return evaluator.run(None, {name: np.asarray(value, types.get(name)) for name, value in values.items()})

    return run
