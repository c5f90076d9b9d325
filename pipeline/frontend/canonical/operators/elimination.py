"""Rewrite Det, and the inverse of ONNX Runtime's domain, as Gauss-Jordan elimination with pivots of columns, step by step.

Golub and Van Loan, "Matrix computations", section 3.4. Rows are chosen by comparison and summed: batches need no index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView

#: rows of a matrix at most: each step adds its own nodes
MOST_ROWS = 16


def determinant(node: NodeView, build: NodeBuilder) -> None:
    """Multiply the pivots; each exchange of rows turns the sign."""
    shape = node.shape(0)
    if shape is None or shape[-1] > MOST_ROWS or shape[-1] < 1:
        return
    _, factors = _eliminate(node.input[0], shape[-1], node.dtype(0), build)
    product = factors[0]
    for factor in factors[1:]:
        product = build.node("Mul", product, factor)
    build.node("Squeeze", product, build.integers(-2, -1), result=node.result)


def inverse(matrix: str, rows: int, dtype: np.dtype, result: str, build: NodeBuilder) -> None:
    """Reduce the matrix beside the unit matrix; what becomes of that is the inverse."""
    ones = build.constant(np.eye(rows, dtype=dtype))
    # zeros of the matrix's own shape spread the unit matrix over batches
    beside = build.node("Add", build.node("Mul", matrix, build.number(0, dtype)), ones)
    reduced, _ = _eliminate(build.node("Concat", matrix, beside, axis=-1), rows, dtype, build)
    ends = (build.integers(each) for each in (rows, 2 * rows, -1))
    build.node("Slice", reduced, *ends, result=result)


def _eliminate(matrix: str, rows: int, dtype: np.dtype, build: NodeBuilder) -> tuple[str, list[str]]:
    """Return the matrix with its first columns those of the unit matrix, and the pivots with their signs."""
    numbers = np.arange(rows).reshape(rows, 1)
    zero, one, minus = (build.number(each, dtype) for each in (0, 1, -1))
    places, factors = build.constant(numbers), []

    def row(chosen: str) -> str:
        return build.node("ReduceSum", build.node("Where", chosen, matrix, zero), build.integers(-2), keepdims=1)

    for step in range(rows):
        column = build.node("Slice", matrix, *(build.integers(each) for each in (step, step + 1, -1)))
        below = build.constant(numbers >= step)
        sizes = build.node("Where", below, build.node("Abs", column), minus)
        place = build.node("ArgMax", sizes, axis=-2, keepdims=1)
        at, here = build.node("Equal", places, place), build.constant(numbers == step)
        pivots, others = row(at), row(here)
        pivot = build.node("Slice", pivots, *(build.integers(each) for each in (step, step + 1, -1)))
        stays = build.node("Equal", place, build.integers(step))
        factors.append(build.node("Mul", pivot, build.node("Where", stays, one, minus)))
        safe = build.node("Where", build.node("Equal", pivot, zero), one, pivot)
        scaled = build.node("Div", pivots, safe)
        exchanged = build.node("Where", at, others, matrix)
        column = build.node("Slice", exchanged, *(build.integers(each) for each in (step, step + 1, -1)))
        less = build.node("Sub", exchanged, build.node("Mul", column, scaled))
        matrix = build.node("Where", here, scaled, less)
    return matrix, factors
