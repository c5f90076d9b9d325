"""Find the slices that the body of a Loop takes by the number of its iteration: sequences that run through it.

    Loop(n){xi = Gather(x, i, axis=0); …}  ──►  Scan(x){xi; …}

A sequence is read in place, and a row of results may take the place of the slice it comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ..shapes import static_shape

if TYPE_CHECKING:
    import onnx


def numbered_slices(
    body: onnx.GraphProto, number: str, outer: Collection[str], types: Mapping[str, onnx.TypeProto], trips: int
) -> tuple[onnx.GraphProto, dict[str, str]]:
    """Make the slices that a body gathers its last inputs; return it, and the sequence behind each.

    `number` is the number of the iteration, `outer` what the body reads from outside.
    """
    found: dict[str, str] = {}
    kept = []
    for node in body.node:
        if _takes_a_slice(node, number) and node.input[0] in outer and _length(types, node.input[0]) == trips:
            found[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    if not found:
        return body, found
    copy = type(body)()
    copy.CopyFrom(body)
    del copy.node[:]
    copy.node.extend(kept)
    copy.input.extend(type(body.input[0])(name=name) for name in found)
    return copy, found


def reads(graph: onnx.GraphProto, name: str) -> bool:
    """Tell whether a graph, or a subgraph of it, reads a value or hands it out."""
    inner = (attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g"))
    return any(name in node.input for node in graph.node) or any(value.name == name for value in graph.output) or any(reads(each, name) for each in inner)


def _takes_a_slice(node: onnx.NodeProto, number: str) -> bool:
    along = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
    return node.op_type == "Gather" and node.input[1] == number and along == 0


def _length(types: Mapping[str, onnx.TypeProto], name: str) -> int | None:
    shape = static_shape(types[name]) if name in types else None
    return shape[0] if shape else None
