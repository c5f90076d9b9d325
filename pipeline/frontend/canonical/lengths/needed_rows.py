"""Find how many rows of a result its readers take at most: boxes behind the first hundred are not selected.

NonMaxSuppression ─► Gather (column 2) ─► Squeeze ─► Slice [0 : 100]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..graph_context import Context
from ..node_builder import attributes_of, inner_graphs
from ..read_onnx import all_nodes

if TYPE_CHECKING:
    import onnx


def needed_rows(graph: onnx.GraphProto, context: Context, name: str) -> int | None:
    """Return the most rows that readers of `name` take from the front; None if one takes all."""
    if any(value.name == name for value in graph.output):
        return None
    most = 0
    for node in graph.node:
        if any(name in inner.input for graph in inner_graphs(node) for inner in all_nodes(graph)):
            return None
        if name not in node.input:
            continue
        found = _needed_by(graph, context, node) if list(node.input).index(name) == 0 else None
        if found is None:
            return None
        most = max(most, found)
    return most or None


def _needed_by(graph: onnx.GraphProto, context: Context, node: onnx.NodeProto) -> int | None:
    """Return the most rows that a node takes of its first operand."""
    operands = [*map(context.constant, node.input[1:])]
    axes: list[int] = []
    if node.op_type == "Slice" and all(each is not None for each in operands[:2]):
        starts, ends, given, steps = (None if each is None else each.tolist() for each in (operands + [None] * 2)[:4])
        rows = zip(starts or (), ends or (), steps or [1] * len(starts or ()))
        start, end, step = dict(zip(given or range(len(starts or ())), rows)).get(0, (0, -1, 1))
        return end if start >= 0 and end > 0 and step == 1 else None
    if node.op_type == "Compress" and _takes_all_or_none(context, node):
        return needed_rows(graph, context, node.output[0])
    if node.op_type == "Shape" and _sizes_flags(graph, context, node):
        return 0
    if node.op_type == "Gather" and operands[0] is not None:
        axes = [int(attributes_of(node).get("axis", 0))]
    elif node.op_type == "Squeeze" and operands and operands[0] is not None:
        axes = [int(each) for each in operands[0].flat]
    elif node.op_type not in ("Cast", "Identity"):
        return None
    return None if any(axis < 1 for axis in axes) else needed_rows(graph, context, node.output[0])


def _takes_all_or_none(context: Context, node: onnx.NodeProto) -> bool:
    """Return whether the flags of a Compress of rows are copies of one flag."""
    made = context.producers.get(node.input[1])
    copied = made is not None and made.op_type == "Expand" and context.shape(made.input[0]) == (1,)
    return copied and attributes_of(node).get("axis") == 0


def _sizes_flags(graph: onnx.GraphProto, context: Context, node: onnx.NodeProto) -> bool:
    """Return whether a Shape only says how many copied flags there are for the rows of its operand."""
    flags = {each.output[0] for each in graph.node if node.output[0] in each.input}
    readers = [each for each in graph.node if not flags.isdisjoint(each.input)]
    return bool(readers) and all(
        each.op_type == "Compress"
        and each.input[0] == node.input[0]
        and each.input[1] in flags
        and _takes_all_or_none(context, each)
        for each in readers
    )
