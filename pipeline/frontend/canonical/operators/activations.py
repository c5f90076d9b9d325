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
    from ..graph_context import NodeView

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


def softplus(node: NodeView, build: NodeBuilder) -> None:
    """Replace Softplus by its series below -5.

    log(1 + e^x) loses all digits once e^x is small; there e^x - e^2x/2 has a relative error below 2e-5.
    """
    x, dtype, wrap = widen(node, build)
    small = build.node("Exp", x)
    half = build.node("Mul", small, build.number(0.5, dtype))
    series = build.node("Sub", small, build.node("Mul", small, half))
    below = build.node("Less", x, build.number(-5, dtype))
    wrap("Where", below, series, build.node("Softplus", x))


def gelu(node: NodeView, build: NodeBuilder) -> None:
    """Replace a Gelu by the tangent: x / 2 · (1 + tanh u) is x · sigmoid 2u, which is 0 where tanh is nearly -1."""
    if node.get("approximate", "none") != "tanh":
        return
    x, dtype, wrap = widen(node, build)
    slope, bend = (build.number(np.sqrt(8 / np.pi) * each, dtype) for each in (1, 0.044715))
    inner = build.node("Add", build.node("Mul", build.node("Mul", x, x), bend), slope)
    wrap("Mul", x, build.node("Sigmoid", build.node("Mul", x, inner)))


def widen(node: NodeView, build: NodeBuilder) -> tuple[str, np.dtype, Callable[..., str]]:
    """Widen an operand of float16 to float32; return it, its dtype, and the builder of the last node."""
    x, dtype = node.input[0], node.dtype(0)
    if dtype != np.float16:
        return x, dtype, partial(build.node, result=node.result)

    def narrow(op: str, *inputs: str, **attributes: Any) -> str:
        return build.cast(build.node(op, *inputs, **attributes), np.float16, node.result)

    return build.cast(x, np.float32), np.dtype(np.float32), narrow


def exponential_unit(node: NodeView, build: NodeBuilder) -> None:
    """Replace Elu, Selu and Celu: gamma · (x, if it is not negative; else alpha · (e^(x / divisor) - 1))."""
    x, dtype, op = node.input[0], node.dtype(0), node.op_type
    if dtype == np.float32 and op != "Celu":
        return
    alpha = node.get("alpha", _SELU_ALPHA if op == "Selu" else 1.0)
    power = build.node("Div", x, build.number(alpha, dtype)) if op == "Celu" else x
    less = build.node("Sub", build.node("Exp", power), build.number(1, dtype))
    curved = build.node("Mul", less, build.number(alpha, dtype))
    chosen = build.node("Where", _is_negative(build, x, dtype), curved, x, result="" if op == "Selu" else node.result)
    if op == "Selu":
        gamma = build.number(node.get("gamma", _SELU_GAMMA), dtype)
        build.node("Mul", chosen, gamma, result=node.result)


def thresholded_relu(node: NodeView, build: NodeBuilder) -> None:
    """Replace ThresholdedRelu by a choice."""
    dtype = node.dtype(0)
    above = build.node("Greater", node.input[0], build.number(node.get("alpha", 1.0), dtype))
    build.node("Where", above, node.input[0], build.number(0, dtype), result=node.result)


def shrink(node: NodeView, build: NodeBuilder) -> None:
    """Replace Shrink by x + bias below -lambd, else x - bias above lambd, else 0."""
    x, dtype = node.input[0], node.dtype(0)
    work = dtype if dtype.kind == "f" else np.dtype(np.float32)
    if work != dtype:
        x = build.cast(x, np.float32)
    limit, bias = (float(node.get(name, default)) for name, default in (("lambd", 0.5), ("bias", 0.0)))
    low, high, shift, zero = (build.number(each, work) for each in (-limit, limit, bias, 0))
    right = build.node("Where", build.node("Greater", x, high), build.node("Sub", x, shift), zero)
    below = build.node("Less", x, low)
    result = build.node("Where", below, build.node("Add", x, shift), right, result=node.result if work == dtype else "")
    if work != dtype:
        build.cast(result, dtype, node.result)


def parametric_relu(node: NodeView, build: NodeBuilder) -> None:
    """Replace PRelu by a choice: a scalar, an integer, or a slope that makes NaN of 0."""
    x, slope = node.input
    value, dtype = node.constant(slope), node.dtype(x)
    if value is not None and np.isfinite(value).all() and dtype.kind == "f" and node.shape(x):
        return
    build.node("Where", _is_negative(build, x, dtype), build.node("Mul", x, slope), x, result=node.result)


def leaky_relu(node: NodeView, build: NodeBuilder) -> None:
    """Replace LeakyRelu by a choice if its slope makes NaN of 0."""
    x, dtype, alpha = node.input[0], node.dtype(0), node.get("alpha", 0.01)
    if np.isfinite(alpha):
        return
    scaled = build.node("Mul", x, build.number(alpha, dtype))
    build.node("Where", _is_negative(build, x, dtype), scaled, x, result=node.result)


def clip(node: NodeView, build: NodeBuilder) -> None:
    """Write out the bounds of a Clip of floats: by default the last finite numbers, which infinity exceeds; NaN bounds nothing."""
    given = ["" if _is_nan(node.constant(name)) else name for name in (*node.input, "", "")][:3]
    dtype = node.dtype(0)
    if dtype.kind == "f" and not all(given):
        last = np.finfo(dtype).max
        bounds = [name or build.number(each, dtype) for name, each in zip(given[1:], (-last, last), strict=True)]
        build.node("Clip", given[0], *bounds, result=node.result)


def _is_nan(bound: np.ndarray | None) -> bool:
    return bound is not None and bound.dtype.kind == "f" and bool(np.isnan(bound).any())


def sign(node: NodeView, build: NodeBuilder) -> None:
    """Give Sign NaN of NaN, and unsigned integers by a comparison: TVM compares them with -1."""
    x, dtype = node.input[0], node.dtype(0)
    if dtype.kind == "f":
        build.node("Where", build.node("IsNaN", x), x, build.node("Sign", x), result=node.result)
    elif dtype.kind == "u":
        above = build.node("Greater", x, build.number(0, dtype))
        build.cast(above, node.element(x), node.result)


def _is_negative(build: NodeBuilder, x: str, dtype: np.dtype) -> str:
    return build.node("Less", x, build.number(0, dtype))
