"""Rewrite ReverseSequence, which TVM's importer lacks, as one Gather of rows.

    time × batch × …  ──►  rows × …  ──Gather──►  time × batch × …       row of step i: length - 1 - i, or i behind the end

A length that ONNX forbids becomes the row behind the last, which the Gather forbids in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView


def reverse_sequence(node: NodeView, build: NodeBuilder) -> None:
    """Gather the first steps of each sequence in reverse; lengths may be computed."""
    x, lengths = node.input
    shape = node.shape(x)
    if shape is None:
        return
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    steps, count = shape[time], shape[batch]
    # both axes are the first two, in either order
    step = build.constant(np.arange(steps).reshape(-1, 1) if time == 0 else np.arange(steps).reshape(1, -1))
    number = build.constant(np.arange(count).reshape(1, -1) if time == 0 else np.arange(count).reshape(-1, 1))
    length = build.node("Reshape", lengths, build.integers(1, -1) if time == 0 else build.integers(-1, 1))
    mirrored = build.node("Sub", build.node("Sub", length, build.integers(1)), step)
    place = build.node("Where", build.node("Less", step, length), mirrored, step)
    along, other, width = (place, number, count) if time == 0 else (number, place, steps)
    row = build.node("Add", build.node("Mul", along, build.integers(width)), other)
    forbidden = build.node(
        "Or", build.node("Less", length, build.integers(0)), build.node("Greater", length, build.integers(steps))
    )
    row = build.node("Where", forbidden, build.integers(steps * count), row)
    rows = build.node("Reshape", x, build.integers(steps * count, *shape[2:]))
    taken = build.node("Gather", rows, build.node("Reshape", row, build.integers(-1)), axis=0)
    build.node("Reshape", taken, build.integers(*shape), result=node.result)
