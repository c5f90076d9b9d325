"""Rewrite operators whose operands have a form that TVM's importer does not take.

Squeeze, Unsqueeze    axes that are one scalar
Pad                   a value that is computed; widths below 0 of a Pad that wraps around
LayerNormalization    scales that do not have the shape of what is normalised
Equal                 truth values
Mul, Div              scalar zeros of floats
CastLike, EyeLike     any dtypes
ScatterND, ScatterElements of truth values
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView


def axes_in_a_line(node: NodeView, build: NodeBuilder) -> None:
    """Make a line of scalar axes."""
    axes = node.constant(1) if len(node.input) > 1 and node.input[1] else None
    if axes is not None and axes.ndim != 1:
        build.node(node.op_type, node.input[0], build.integers(*axes.reshape(-1).tolist()), result=node.result)


def pad_with_computed(node: NodeView, build: NodeBuilder) -> None:
    """Replace a Pad with a computed value by concatenations, axis by axis, of what a Pad with negative widths leaves."""
    data, widths, value, along = node.inputs(4)
    shape, pads, axes = node.shape(data), node.constant(widths), node.constant(along)
    if shape is None or pads is None or (along and axes is None):
        return
    if node.get("mode", "constant") != "constant":
        if (pads < 0).any():
            less, more = (build.integers(*each.tolist()) for each in (np.minimum(pads, 0), np.maximum(pads, 0)))
            build.node(
                "Pad", build.node("Pad", data, less, "", along), more, "", along, result=node.result, **node.attributes
            )
        return
    if not value or node.constant(value) is not None:
        return
    rank, count = len(shape), len(pads) // 2
    numbers = [int(axis) % rank for axis in axes] if axes is not None else list(range(rank))
    before, after = [0] * rank, [0] * rank
    for place, axis in enumerate(numbers):
        before[axis], after[axis] = int(pads[place]), int(pads[count + place])
    cuts = [min(0, each) for each in (*before, *after)]
    found = build.node("Pad", data, build.integers(*cuts)) if any(cuts) else data
    extents = [extent + cuts[axis] + cuts[rank + axis] for axis, extent in enumerate(shape)]
    for axis in range(rank):
        parts = [found]
        for width, place in ((before[axis], 0), (after[axis], len(parts) + 1)):
            if width > 0:
                sizes = [*extents[:axis], width, *extents[axis + 1 :]]
                parts.insert(place, build.node("Expand", value, build.integers(*sizes)))
        if len(parts) > 1:
            found = build.node("Concat", *parts, axis=axis)
            extents[axis] += max(0, before[axis]) + max(0, after[axis])
    build.node("Identity", found, result=node.result)


def equal(node: NodeView, build: NodeBuilder) -> None:
    """Replace Equal of truth values, for which LLVM has no comparison of TVM's kind."""
    if node.dtype(0) == np.dtype(bool):
        build.node("Not", build.node("Xor", *node.input), result=node.result)


def zero_in_a_line(node: NodeView, build: NodeBuilder) -> None:
    """Make a line of a scalar zero: TVM folds x · 0 and 0 ÷ x to 0, which is NaN for infinities, NaN and 0 ÷ 0."""
    values = [node.constant(place) for place in range(2)]
    if not any(map(node.shape, node.input)):
        return
    zeros = [value is not None and value.ndim == 0 and value.dtype.kind == "f" and not value for value in values]
    if any(zeros):
        operands = [
            build.constant(value.reshape(1)) if zero and value is not None else name
            for name, value, zero in zip(node.input, values, zeros)
        ]
        build.node(node.op_type, *operands, result=node.result)


def cast_like(node: NodeView, build: NodeBuilder) -> None:
    """Replace CastLike by Cast."""
    build.cast(node.input[0], node.element(1), node.result)


def eye_like(node: NodeView, build: NodeBuilder) -> None:
    """Replace EyeLike by a comparison of the numbers of rows and columns."""
    shape = node.shape(0)
    if shape is None:
        return
    kind = node.get("dtype") or node.element(0)
    rows = build.constant(np.arange(shape[0], dtype=np.int64).reshape(-1, 1) + int(node.get("k", 0)))
    columns = build.constant(np.arange(shape[1], dtype=np.int64).reshape(1, -1))
    build.cast(build.node("Equal", rows, columns), kind, node.result)


def scatter_truth(node: NodeView, build: NodeBuilder) -> bool:
    """Scatter truth values as numbers, if they are joined; tell whether that was so."""
    joined = node.get("reduction", "none") != "none" and node.dtype(0) == np.dtype(bool)
    if joined:
        data, updates = (build.cast(node.input[place], np.int32) for place in (0, 2))
        found = build.node(node.op_type, data, node.input[1], updates, **node.attributes)
        build.cast(found, bool, node.result)
    return joined


def scatter_places(node: NodeView, build: NodeBuilder) -> None:
    """Replace a ScatterND of truth values that are joined."""
    scatter_truth(node, build)
