"""Find the sequences that run through a Loop: its body takes slices by the number of the iteration.

    Loop(n){xi = Gather(x, i, axis=0); …}  ──►  Scan(x){xi; …}

A sequence is read in place, and a row of results may take the place of the slice it comes from. Axes before the one that
is gathered have one element, so that no sequence is transposed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...source.keep_outputs import reads
from ..node_builder import Names, replace_nodes
from ..shapes import static_shape

if TYPE_CHECKING:
    import onnx


class Sliced(NamedTuple):
    """A value that a body takes slices of, along an axis."""

    name: str
    axis: int


def numbered_slices(
    body: onnx.GraphProto, number: str, outer: Collection[str], types: Mapping[str, onnx.TypeProto], trips: int
) -> tuple[onnx.GraphProto, dict[str, Sliced]]:
    """Make the slices that a body gathers its last inputs; return it, and the sequence behind each.

    `number` is the number of the iteration, `outer` what the body reads from outside. A slice that the body returns is copied.
    """
    from onnx import helper

    found: dict[str, Sliced] = {}
    kept, names, returned = [], Names(body), {value.name for value in body.output}
    for node in body.node:
        sliced = _sequence_of(node, number, types, trips)
        if sliced is not None and sliced.name in outer:
            name = node.output[0]
            if name in returned:
                taken = names.new(f"{name}/slice")
                kept.append(helper.make_node("Identity", [taken], [name], name=node.name))
                name = taken
            found[name] = sliced
        else:
            kept.append(node)
    if not found:
        return body, found
    copy = deepcopy(body)
    replace_nodes(copy, kept)
    copy.input.extend(type(body.input[0])(name=name) for name in found)
    return copy, found


def gather_slices(body: onnx.GraphProto, constants: Mapping[str, onnx.TensorProto]) -> None:
    """Gather slices of one row at the number of the iteration, in place: the shape of a Gather is known before the model runs.

    x[i : i + 1]  ──►  x[[i]]; `constants` are those of the graph around it.
    """
    from onnx import helper, numpy_helper

    makers = {name: node for node in body.node for name in node.output}
    known = {**constants, **{tensor.name: tensor for tensor in body.initializer}}

    def number(name: str) -> int | None:
        value = numpy_helper.to_array(known[name]) if name in known else np.empty(0)
        return int(value.item()) if value.size == 1 else None

    def behind(name: str) -> int | None:
        """Return how far a value is behind the number of the iteration."""
        if name == body.input[0].name:
            return 0
        maker = makers.get(name)
        if maker is None or maker.op_type not in ("Add", "Cast", "Identity", "Reshape", "Unsqueeze"):
            return None
        if maker.op_type != "Add":
            return behind(maker.input[0])
        for one, other in (maker.input, maker.input[::-1]):
            start, more = behind(one), number(other)
            if start is not None and more is not None:
                return start + more
        return None

    for node in body.node:
        if node.op_type != "Slice" or len(node.input) < 4:
            continue
        start, end, axis = behind(node.input[1]), behind(node.input[2]), number(node.input[3])
        by = number(node.input[4]) if len(node.input) > 4 else 1
        if axis is not None and by == 1 and start is not None and start >= 0 and end == start + 1:
            node.op_type = "Gather"
            del node.input[2:]
            node.attribute.append(helper.make_attribute("axis", axis))


def is_read(graph: onnx.GraphProto, name: str) -> bool:
    """Return whether a graph or a subgraph reads a value or returns it."""
    return any(value.name == name for value in graph.output) or any(name in reads(node) for node in graph.node)


def _sequence_of(node: onnx.NodeProto, number: str, types: Mapping[str, onnx.TypeProto], trips: int) -> Sliced | None:
    """Return the sequence a node gathers slice by slice, first to last; None for other nodes."""
    if node.op_type != "Gather" or node.input[1] != number or node.input[0] not in types:
        return None
    shape = static_shape(types[node.input[0]])
    if not shape:
        return None
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0) % len(shape)
    return Sliced(node.input[0], axis) if shape[axis] == trips and math.prod(shape[:axis]) == 1 else None
