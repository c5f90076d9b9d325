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

from ...source.keep_outputs import reads
from ..node_builder import replace_nodes
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

    `number` is the number of the iteration, `outer` what the body reads from outside.
    """
    found: dict[str, Sliced] = {}
    kept = []
    for node in body.node:
        sliced = _sequence_of(node, number, types, trips)
        if sliced is not None and sliced.name in outer:
            found[node.output[0]] = sliced
        else:
            kept.append(node)
    if not found:
        return body, found
    copy = deepcopy(body)
    replace_nodes(copy, kept)
    copy.input.extend(type(body.input[0])(name=name) for name in found)
    return copy, found


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
