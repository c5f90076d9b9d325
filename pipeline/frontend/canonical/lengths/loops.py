"""Run a Loop as often as a length says, up to its bound: its states stay behind it, and its rows are of that length.

Loop(length, true, h){h' = f(h, rows[number]); y}  ──►  Loop(bound, …){h' where number < length, else h; y}
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

import numpy as np

from ...source.keep_outputs import read_from_outside
from ...traits import PASSES
from ..control_flow.bounded_loops import running_body
from ..control_flow.long_loops import MOST_TRIPS
from ..control_flow.trip_count import trip_count
from ..node_builder import NodeBuilder, attributes_of
from ..read_onnx import all_nodes
from ..shapes import infer_what_is_open, static_shape, value_types
from .extent import Extent
from .open_graph import Open, Reader

if TYPE_CHECKING:
    import onnx


def loop(reader: Reader) -> list[Open | None]:
    """Run a loop to the bound of its length; a condition may end it sooner, which decides another length."""
    from onnx import TensorProto, helper

    graph, build, node = reader.graph, reader.build, reader.proto
    size, body, states = reader.held(0).item(), deepcopy(reader.attributes["body"]), list(node.input[2:])
    if not isinstance(size, Extent) or size.scale < 1 or not 0 < size.largest <= MOST_TRIPS:
        reader.refuse("it is not the number of its iterations alone")
    if any(reader.opens[1:]):
        reader.refuse("a state is of open length")
    trips, length = size.largest, graph.length_of(build, size)
    _refuse_whole_rows(reader, body, trips)
    types = _types_of(reader, body, states, trips)
    limit = build.constant(np.asarray(trips))
    read = {name for name in (node.input[1], *states, *read_from_outside(body)) if name in graph.constants}
    constants = {name: value for name in read if (value := graph.constant(name)) is not None}
    counted = _with_limit(node, limit)
    whole = trip_count(counted, body, constants | {limit: np.asarray(trips)}, trips, graph.opset) == trips
    number = build.node("Reshape", length, build.integers())
    going = build.node("And", node.input[1], build.node("Less", build.constant(np.asarray(0)), number))
    inner = NodeBuilder(f"{build.stem}/counted", build.names)
    following = inner.node("Add", body.input[0].name, inner.constant(np.asarray(1)))
    goes_on = inner.node("And", body.output[0].name, inner.node("Less", following, number))
    body.node.extend(inner.nodes)
    body.initializer.extend(inner.initializers)
    body.output[0].name = goes_on
    runs = running_body(body, states, [graph.types[name] for name in states], build)
    given = [limit, build.constant(np.asarray(True)), build.node("Reshape", going, build.integers()), *states]
    results = build.many("Loop", given, len(body.output) + 1, body=runs)
    first, made = len(states), build.nodes[-1]
    named = [*node.output, *[""] * (len(types) - len(node.output))]
    made.output[:] = [name or own for name, own in zip(["", *named[:first], "", *named[first:]], results, strict=True)]
    flags = [helper.make_tensor_type_proto(TensorProto.BOOL, shape) for shape in ([], [trips])]
    graph.types.update(zip(made.output, [flags[0], *types[:first], flags[1], *types[first:]]))
    if not whole:
        ran = build.cast(made.output[1 + first], np.int64)
        length = build.node("ReduceSum", ran, build.integers(0), keepdims=1)
    return [None] * first + [Open(0, length, trips)] * (len(node.output) - first)


def _with_limit(node: onnx.NodeProto, limit: str) -> onnx.NodeProto:
    counted = deepcopy(node)
    counted.input[0] = limit
    return counted


def _refuse_whole_rows(reader: Reader, body: onnx.GraphProto, trips: int) -> None:
    """Refuse a body that reads more of an open value than the slice of one of `trips` iterations."""
    numbers = {body.input[0].name}
    for node in body.node:
        if node.op_type in PASSES and node.input[0] in numbers:
            numbers.add(node.output[0])
    slices = [
        node
        for node in body.node
        if node.op_type == "Gather" and node.input[0] in reader.graph.extents and node.input[1] in numbers
    ]
    for node in slices:
        extent, rank = reader.graph.extents[node.input[0]], len(reader.graph.shape(node.input[0]) or ())
        if int(attributes_of(node).get("axis", 0)) % rank != extent.axis or trips > extent.bound:
            reader.refuse(f"its body takes more of '{node.input[0]}' than a row, or more rows than there are")
    for node in all_nodes(body):
        for name in node.input:
            if name in reader.graph.extents and node not in slices:
                reader.refuse(f"its body takes more of '{name}' than a row")


def _types_of(reader: Reader, body: onnx.GraphProto, states: Sequence[str], trips: int) -> list[onnx.TypeProto]:
    """Return the types of the results of a loop. Refuses states that change their shapes, and rows of open shape."""
    from onnx import TensorProto, helper

    context = reader.graph
    scalars = [helper.make_tensor_type_proto(element, []) for element in (TensorProto.INT64, TensorProto.BOOL)]
    given = [*scalars, *(context.types[name] for name in states)]
    outside = sorted(name for name in read_from_outside(body) if name in context.types)
    ports = [
        *(helper.make_value_info(value.name, kind) for value, kind in zip(body.input, given, strict=True)),
        *(helper.make_value_info(name, context.types[name]) for name in outside),
    ]
    results = [helper.make_empty_tensor_value_info(each.name) for each in body.output]
    known = [*body.initializer, *(context.constants[name] for name in outside if name in context.constants)]
    graph = helper.make_graph(body.node, "body", ports, results, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", context.opset)])
    inferred = value_types(infer_what_is_open(model).graph)
    found = [inferred[value.name] for value in body.output[1:]]
    shapes = [static_shape(kind) for kind in found]
    if None in shapes or shapes[: len(states)] != [context.shape(name) for name in states]:
        reader.refuse("its states change their shapes, or those of its rows are not known")
    rows = zip(found[len(states) :], shapes[len(states) :])
    return [
        *given[2:],
        *(helper.make_tensor_type_proto(kind.tensor_type.elem_type, [trips, *(shape or ())]) for kind, shape in rows),
    ]
