"""Write normalisations by means: TVM misreads them, or takes none of them.

TVM takes the axes of LayerNormalization to be as many as its scale has, scale and bias to be of one shape, and neither
operator over all dimensions. The mean and the inverse deviation are further results. Less its mean, one element is 0 to it,
NaN or infinity too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder
from .reductions import AXES_AS_INPUT, reduce_along

if TYPE_CHECKING:
    from ..graph_context import NodeView

#: added to the deviation by MeanVarianceNormalization
_LEAST = 1e-9


@dataclass(frozen=True)
class Means:
    """Means along `axes` of values of dtype `kind`, float16 in float32, in operator set `opset`."""

    build: NodeBuilder
    axes: list[int]
    kind: np.dtype
    opset: int = AXES_AS_INPUT

    @property
    def work(self) -> np.dtype:
        """Return the dtype that is computed in."""
        return np.dtype(np.float32) if self.kind == np.float16 else self.kind

    def widen(self, x: str) -> str:
        """Build a value in the dtype that is computed in."""
        return x if self.work == self.kind else self.build.cast(x, self.work)

    def mean(self, value: str) -> str:
        """Build the mean."""
        return reduce_along(self.build, "ReduceMean", value, self.axes, self.opset)

    def divide_by_root(self, x: str, epsilon: float, scale: str, shift: str, y: str, inverse: str) -> None:
        """Build y = x / root · scale + shift, and 1 / root in float32; root = √(mean of x² + ε)."""
        build = self.build
        square = self.mean(build.node("Mul", x, x))
        root = build.node("Sqrt", build.node("Add", square, build.number(epsilon, self.work)))
        if inverse:
            build.cast(build.node("Reciprocal", root), np.float32, inverse)
        normal = build.node("Div", x, root)
        if self.work != self.kind:
            normal = build.cast(normal, self.kind)
        scaled = build.node("Mul", normal, scale, result="" if shift else y)
        if shift:
            build.node("Add", scaled, shift, result=y)


def normalise_by_means(node: NodeView, build: NodeBuilder) -> None:
    """Replace the operator by (x − mean) / √(variance + ε) · scale + bias; RMSNormalization has no mean and no bias."""
    x, scale, shift = node.inputs(3)
    y, mean, inverse = node.outputs(3)
    shape, kind = node.shape(x), node.dtype(x)
    if shape is None:
        return
    axis = int(node.get("axis", -1)) % max(len(shape), 1)
    own = shape[axis:]
    if (
        axis
        and kind != np.float64
        and math.prod(own) > 1
        and not (mean or inverse)
        and all(node.shape(name) == own for name in (scale, shift) if name)
    ):
        return
    means = Means(build, list(range(axis, len(shape))), kind, node.graph.opset)
    wide = means.widen(x)
    if node.op_type == "LayerNormalization":
        middle = means.mean(wide)
        if mean:
            build.cast(middle, np.float32, mean)
        several = math.prod(own) > 1
        wide = build.node("Sub", wide, middle) if several else _finite_or_nan(wide, 0, means.work, build)
    means.divide_by_root(wide, node.get("epsilon", 1e-5), scale, shift, y, inverse)


def normalise_deviation(node: NodeView, build: NodeBuilder) -> None:
    """Replace MeanVarianceNormalization by (x − mean) / (deviation + 1e-9).

    The mean of squares less the square of the mean, by which ONNX writes the variance, loses its digits.
    """
    x, axes = node.input[0], list(node.get("axes", (0, 2, 3)))
    means = Means(build, axes, node.dtype(x), node.graph.opset)
    wide = means.widen(x)
    centred = build.node("Sub", wide, means.mean(wide))
    deviation = build.node("Sqrt", means.mean(build.node("Mul", centred, centred)))
    normal = build.node("Div", centred, build.node("Add", deviation, build.number(_LEAST, means.work)))
    build.cast(normal, means.kind, node.result)


def softmax_of_one(node: NodeView, build: NodeBuilder) -> None:
    """Replace a softmax along one element by 1, its logarithm by 0; of infinity it is NaN."""
    x, shape, axis = node.input[0], node.shape(0) or (), int(node.get("axis", -1))
    if -len(shape) <= axis < len(shape) and shape[axis] == 1:
        _finite_or_nan(x, int(node.op_type == "Softmax"), node.dtype(x), build, node.result)


def _finite_or_nan(x: str, number: int, dtype: np.dtype, build: NodeBuilder, result: str = "") -> str:
    """Build a number, and NaN for elements of `x` that are not finite: TVM takes x − x for 0."""
    infinity, finite, none = (build.number(each, dtype) for each in (np.inf, number, np.nan))
    return build.node("Where", build.node("Less", build.node("Abs", x), infinity), finite, none, result=result)
