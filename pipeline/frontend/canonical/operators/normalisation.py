"""Write normalisations by means where TVM cannot, or misreads them.

TVM takes the axes of LayerNormalization to be as many as its scale has, scale and bias to be of one shape, and neither
operator over all dimensions. The mean and the inverse deviation are further results. Less its mean, one element is 0 to it,
NaN or infinity too.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx

    from ..graph_context import Context

#: added to the deviation by MeanVarianceNormalization
_LEAST = 1e-9
#: the operator set from which on ReduceMean has its axes as an input
_AXES_ARE_INPUTS = 18


def normalise_by_means(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace the operator by (x − mean) / √(variance + ε) · scale + bias; RMSNormalization has no mean and no bias."""
    x, scale, shift = [*node.input, ""][:3]
    y, mean, inverse = [*node.output, "", ""][:3]
    shape, kind = context.shape(x), context.dtype(x)
    if shape is None:
        return
    axis = int(attributes.get("axis", -1)) % max(len(shape), 1)
    own = shape[axis:]
    if (
        axis
        and kind != np.float64
        and math.prod(own) > 1
        and not (mean or inverse)
        and all(context.shape(name) == own for name in (scale, shift) if name)
    ):
        return
    axes, half = list(range(axis, len(shape))), kind == np.float16
    wide = build.cast(x, np.float32) if half else x
    if node.op_type == "LayerNormalization":
        middle = _mean(wide, axes, context, build)
        if mean:
            build.cast(middle, np.float32, mean)
        wide = (
            build.node("Sub", wide, middle)
            if math.prod(own) > 1
            else _finite_or_nan(wide, 0, np.dtype(np.float32) if half else kind, build)
        )
    epsilon = build.number(attributes.get("epsilon", 1e-5), np.float32 if half else kind)
    spread = _mean(build.node("Mul", wide, wide), axes, context, build)
    root = build.node("Sqrt", build.node("Add", spread, epsilon))
    if inverse:
        build.cast(build.node("Reciprocal", root), np.float32, inverse)
    normal = build.node("Div", wide, root)
    if half:
        normal = build.cast(normal, kind)
    scaled = build.node("Mul", normal, scale, result="" if shift else y)
    if shift:
        build.node("Add", scaled, shift, result=y)


def normalise_deviation(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace MeanVarianceNormalization by (x − mean) / (deviation + 1e-9).

    The mean of squares less the square of the mean, by which ONNX writes the variance, loses its digits.
    """
    x, axes, kind = node.input[0], list(attributes.get("axes", (0, 2, 3))), context.dtype(node.input[0])
    wide = build.cast(x, np.float32) if kind == np.float16 else x
    centred = build.node("Sub", wide, _mean(wide, axes, context, build))
    deviation = build.node("Sqrt", _mean(build.node("Mul", centred, centred), axes, context, build))
    least = build.number(_LEAST, np.float32 if kind == np.float16 else kind)
    normal = build.node("Div", centred, build.node("Add", deviation, least))
    build.cast(normal, kind, node.output[0])


def softmax_of_one(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace a softmax along one element by 1, its logarithm by 0; of infinity it is NaN."""
    x, shape, axis = node.input[0], context.shape(node.input[0]) or (), int(attributes.get("axis", -1))
    if -len(shape) <= axis < len(shape) and shape[axis] == 1:
        _finite_or_nan(x, int(node.op_type == "Softmax"), context.dtype(x), build, node.output[0])


def _finite_or_nan(x: str, number: int, dtype: np.dtype, build: NodeBuilder, result: str = "") -> str:
    """Build a number, and NaN for elements of `x` that are not finite: TVM takes x − x for 0."""
    infinity, finite, none = (build.number(each, dtype) for each in (np.inf, number, np.nan))
    return build.node("Where", build.node("Less", build.node("Abs", x), infinity), finite, none, result=result)


def _mean(value: str, axes: list[int], context: Context, build: NodeBuilder) -> str:
    if context.opset < _AXES_ARE_INPUTS:
        return build.node("ReduceMean", value, axes=axes, keepdims=1)
    return build.node("ReduceMean", value, build.integers(*axes), keepdims=1)
