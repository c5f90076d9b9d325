"""Rewrite activations whose form TVM's importer reads wrongly: constants in float32 whatever the dtype, NaN, one dimension at least.

Elu, Selu, Celu      a choice between x and the exponential, but for float32
ThresholdedRelu      x or 0: TVM multiplies, and 0 · ∞ is NaN
Shrink               a choice of three, also where they overlap; integers by way of float32
PRelu, LeakyRelu     x or slope · x, where the slope is not finite, or not known
Gelu                 by a sigmoid if it is by a tangent, whose last digits x multiplies
Softplus             float16 by way of float32
Clip                 the bounds that float numbers have
Sign                 NaN of NaN; unsigned integers
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..node_builder import NodeBuilder

if TYPE_CHECKING:
    import onnx

    from ..graph_context import Context

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def softplus(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace Softplus by its series below -5.

    log(1 + e^x) loses all digits once e^x is small; there e^x - e^2x/2 has a relative error below 2e-5.
    """
    x, dtype, wrap = widen(node, context, build)
    small = build.node("Exp", x)
    half = build.node("Mul", small, build.number(0.5, dtype))
    series = build.node("Sub", small, build.node("Mul", small, half))
    below = build.node("Less", x, build.number(-5, dtype))
    wrap("Where", below, series, build.node("Softplus", x))


def gelu(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace a Gelu by the tangent: x / 2 · (1 + tanh u) is x · sigmoid 2u, which is 0 where tanh is nearly -1."""
    if attributes.get("approximate", "none") != "tanh":
        return
    x, dtype, wrap = widen(node, context, build)
    slope, bend = (build.number(np.sqrt(8 / np.pi) * each, dtype) for each in (1, 0.044715))
    inner = build.node("Add", build.node("Mul", build.node("Mul", x, x), bend), slope)
    wrap("Mul", x, build.node("Sigmoid", build.node("Mul", x, inner)))


def widen(node: onnx.NodeProto, context: Context, build: NodeBuilder) -> tuple[str, np.dtype, Callable[..., str]]:
    """Widen an operand of float16 to float32; return it, its dtype, and the builder of the last node."""
    x, dtype = node.input[0], context.dtype(node.input[0])
    if dtype != np.float16:
        return x, dtype, partial(build.node, result=node.output[0])

    def narrow(op: str, *inputs: str, **attributes: Any) -> str:
        return build.cast(build.node(op, *inputs, **attributes), np.float16, node.output[0])

    return build.cast(x, np.float32), np.dtype(np.float32), narrow


def exponential_unit(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace Elu, Selu and Celu: gamma · (x, if it is not negative; else alpha · (e^(x / divisor) - 1))."""
    x, dtype, op = node.input[0], context.dtype(node.input[0]), node.op_type
    if dtype == np.float32 and op != "Celu":
        return
    alpha = attributes.get("alpha", _SELU_ALPHA if op == "Selu" else 1.0)
    power = build.node("Div", x, build.number(alpha, dtype)) if op == "Celu" else x
    less = build.node("Sub", build.node("Exp", power), build.number(1, dtype))
    curved = build.node("Mul", less, build.number(alpha, dtype))
    chosen = build.node(
        "Where", _is_negative(build, x, dtype), curved, x, result="" if op == "Selu" else node.output[0]
    )
    if op == "Selu":
        gamma = build.number(attributes.get("gamma", _SELU_GAMMA), dtype)
        build.node("Mul", chosen, gamma, result=node.output[0])


def thresholded_relu(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace ThresholdedRelu by a choice."""
    dtype = context.dtype(node.input[0])
    above = build.node("Greater", node.input[0], build.number(attributes.get("alpha", 1.0), dtype))
    build.node("Where", above, node.input[0], build.number(0, dtype), result=node.output[0])


def shrink(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace Shrink by x + bias below -lambd, else x - bias above lambd, else 0."""
    x, dtype = node.input[0], context.dtype(node.input[0])
    work = dtype if dtype.kind == "f" else np.dtype(np.float32)
    if work != dtype:
        x = build.cast(x, np.float32)
    limit, bias = (float(attributes.get(name, default)) for name, default in (("lambd", 0.5), ("bias", 0.0)))
    low, high, shift, zero = (build.number(each, work) for each in (-limit, limit, bias, 0))
    right = build.node("Where", build.node("Greater", x, high), build.node("Sub", x, shift), zero)
    below = build.node("Less", x, low)
    result = build.node(
        "Where", below, build.node("Add", x, shift), right, result=node.output[0] if work == dtype else ""
    )
    if work != dtype:
        build.cast(result, dtype, node.output[0])


def parametric_relu(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace PRelu by a choice: a scalar, an integer, or a slope that makes NaN of 0."""
    x, slope = node.input
    value, dtype = context.constant(slope), context.dtype(x)
    if value is not None and np.isfinite(value).all() and dtype.kind == "f" and context.shape(x):
        return
    build.node("Where", _is_negative(build, x, dtype), build.node("Mul", x, slope), x, result=node.output[0])


def leaky_relu(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Replace LeakyRelu by a choice if its slope makes NaN of 0."""
    x, dtype, alpha = node.input[0], context.dtype(node.input[0]), attributes.get("alpha", 0.01)
    if np.isfinite(alpha):
        return
    scaled = build.node("Mul", x, build.number(alpha, dtype))
    build.node("Where", _is_negative(build, x, dtype), scaled, x, result=node.output[0])


def clip(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Write out the bounds of a Clip of floats: by default the last finite numbers, which infinity exceeds; NaN bounds nothing."""
    given = ["" if _is_nan(context.constant(name)) else name for name in (*node.input, "", "")][:3]
    dtype = context.dtype(node.input[0])
    if dtype.kind == "f" and not all(given):
        last = np.finfo(dtype).max
        bounds = [name or build.number(each, dtype) for name, each in zip(given[1:], (-last, last), strict=True)]
        build.node("Clip", given[0], *bounds, result=node.output[0])


def _is_nan(bound: np.ndarray | None) -> bool:
    return bound is not None and bound.dtype.kind == "f" and bool(np.isnan(bound).any())


def sign(node: onnx.NodeProto, attributes: dict[str, Any], context: Context, build: NodeBuilder) -> None:
    """Give Sign NaN of NaN, and unsigned integers by a comparison: TVM compares them with -1."""
    x, dtype = node.input[0], context.dtype(node.input[0])
    if dtype.kind == "f":
        build.node("Where", build.node("IsNaN", x), x, build.node("Sign", x), result=node.output[0])
    elif dtype.kind == "u":
        above = build.node("Greater", x, build.number(0, dtype))
        build.cast(above, context.types[x].tensor_type.elem_type, node.output[0])


def _is_negative(build: NodeBuilder, x: str, dtype: np.dtype) -> str:
    return build.node("Less", x, build.number(0, dtype))
