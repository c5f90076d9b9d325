"""Rewrite Pow of integers or of two dtypes, which TVM lacks.

Squares and cubes become products, as in ONNX Runtime: those of integers wrap. Other powers of integers are powers in
float64, and the least number where they leave the dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    from ..graph_context import NodeView


def power(node: NodeView, build: NodeBuilder) -> None:
    """Replace a power by products, or compute it in one dtype of floats."""
    base, exponent = node.input
    value, shape, result = node.constant(exponent), node.shape(base), node.shape(node.result)
    if value is not None and value.size == 1 and value.item() in (2, 3) and shape is not None:
        product = build.node("Mul", base, base)
        product = build.node("Mul", product, base) if value.item() == 3 else product
        if result is not None and len(result) != len(shape):
            product = build.node("Reshape", product, build.integers(*result))
        build.nodes[-1].output[0] = node.result
        return
    kind, other = node.dtype(base), node.dtype(exponent)
    if kind == other and kind.kind == "f":
        return
    exact = value is not None and kind.kind == "f" and (value.astype(kind).astype(np.float64) == value).all()
    work = kind if exact else np.float64
    found = build.node("Pow", build.cast(base, work), build.cast(exponent, work))
    build.cast(found, kind, node.result)
