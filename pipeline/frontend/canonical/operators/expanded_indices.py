"""Index lines by one number each: indices repeated for every element of a line are as large as the data.

    GatherElements(x, Expand(i))                    →  Gather(x, i)
    ScatterElements(x, Expand(i), updates)          →  ScatterND(x, i, updates)        along the first axis

So write graph networks their messages: the sum of the updates of each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder
from .operand_forms import scatter_truth

if TYPE_CHECKING:
    from ..graph_context import NodeView


def gather_lines(node: NodeView, build: NodeBuilder) -> None:
    """Replace a GatherElements whose indices are expanded along the other axes, which it reads whole."""
    axis, lines = _lines(node)
    if lines is not None:
        build.node(
            "Gather", node.input[0], build.node("Reshape", lines, build.integers(-1)), result=node.result, axis=axis
        )


def scatter_lines(node: NodeView, build: NodeBuilder) -> None:
    """Replace a ScatterElements along the first axis whose indices are expanded along the others, which it writes whole."""
    if scatter_truth(node, build):
        return
    axis, lines = _lines(node)
    if lines is not None and axis == 0 and node.shape(2) == node.shape(1):
        kept = {name: value for name, value in node.attributes.items() if name == "reduction"}
        column = build.node("Reshape", lines, build.integers(-1, 1))
        build.node("ScatterND", node.input[0], column, node.input[2], result=node.result, **kept)


def scatter_steps(node: NodeView, build: NodeBuilder) -> None:
    """Replace TensorScatter by a ScatterElements of the steps from each sequence's first one on."""
    cache, update = (node.shape(name) for name in node.input[:2])
    if cache is None or update is None:
        return
    rank, result = len(cache), node.result
    axis = node.get("axis", -2) % rank
    steps = build.constant(np.arange(update[axis]).reshape([-1 if each == axis else 1 for each in range(rank)]))
    if len(node.input) > 2 and node.input[2]:
        first = build.node("Reshape", node.input[2], build.integers(-1, *[1] * (rank - 1)))
        steps = build.node("Add", build.from_zero(first, np.int64), steps)
    if node.get("mode", "linear") == "circular":
        steps = build.node("Mod", steps, build.integers(cache[axis]))
    places = build.node("Expand", steps, build.integers(*update))
    build.node("ScatterElements", node.input[0], places, node.input[1], result=result, axis=axis)


def _lines(node: NodeView) -> tuple[int, str | None]:
    """Return the axis, and the indices before they were expanded; None if these vary along another axis."""
    data, indices = node.shape(0), node.shape(1)
    expand = node.graph.producers.get(node.input[1])
    axis = int(node.get("axis", 0)) % len(data) if data else 0
    if not data or indices is None or expand is None or expand.op_type != "Expand":
        return axis, None
    before = node.shape(expand.input[0])
    others = [number for number in range(len(data)) if number != axis]
    if before is None or len(before) > len(data) or any(data[each] != indices[each] for each in others):
        return axis, None
    before = (1,) * (len(data) - len(before)) + before
    fits = before[axis] == indices[axis] and all(before[each] == 1 for each in others)
    return axis, expand.input[0] if fits and others else None
