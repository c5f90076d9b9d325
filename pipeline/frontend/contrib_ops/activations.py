"""Express the GELUs and normalisations of ONNX Runtime's transformer optimiser: BiasGelu, SkipLayerNormalization …"""

from __future__ import annotations

import math

import numpy as np

from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from ..canonical.operators.normalisation import Means
from .attention import count_to
from .elementwise import own

#: of the tanh that approximates erf (Hendrycks and Gimpel, "Gaussian error linear units", 2016)
_CUBE, _TANH = 0.044715, math.sqrt(2 / math.pi)


def _sum(node: NodeView, build: NodeBuilder) -> str:
    x, bias = node.inputs(2)
    return build.node("Add", x, bias) if bias else x


def _gelu(node: NodeView, build: NodeBuilder) -> None:
    """Build x / 2 · (1 + erf(x / √2)) of the sum of the inputs."""
    x = _sum(node, build)
    half, one, root = (build.number(each, node.dtype(0)) for each in (0.5, 1, math.sqrt(2)))
    grown = build.node("Add", build.node("Erf", build.node("Div", x, root)), one)
    build.node("Mul", build.node("Mul", x, half), grown, result=node.result)


def _fast_gelu(node: NodeView, build: NodeBuilder) -> None:
    """Build the tanh form of GELU of the sum of the inputs: x / 2 · (1 + tanh(√(2 / π) · (x + 0.044715 x³)))."""
    x = _sum(node, build)
    half, one, cube, step = (build.number(each, node.dtype(0)) for each in (0.5, 1, _CUBE, _TANH))
    square = build.node("Add", build.node("Mul", build.node("Mul", x, x), cube), one)
    bent = build.node("Tanh", build.node("Mul", build.node("Mul", x, step), square))
    build.node("Mul", build.node("Mul", x, half), build.node("Add", bent, one), result=node.result)


def _quick_gelu(node: NodeView, build: NodeBuilder) -> None:
    x = node.input[0]
    steep = build.node("Mul", x, build.number(node.get("alpha", 1.702), node.dtype(x)))
    build.node("Mul", x, build.node("Sigmoid", steep), result=node.result)


def _simplified(node: NodeView, build: NodeBuilder) -> None:
    """Build the division by the root mean square, along all axes from one on."""
    x, scale = node.inputs(2)
    axis, rank = node.get("axis", -1), node.rank(x)
    y, inverse = node.outputs(2)
    if axis >= 0 and rank is None:
        raise UnsupportedForm("the rank of its input is not known")
    axes = list(range(axis - (rank or 0) if axis >= 0 else axis, 0))
    means = Means(build, axes, node.dtype(scale))
    means.divide_by_root(means.widen(x), node.get("epsilon", 1e-5), scale, "", y, inverse)


def _skip(simplified: bool) -> Rule:
    def rule(node: NodeView, build: NodeBuilder) -> None:
        """Build the normalisation of x + skip + bias; the sum is the fourth output."""
        x, skip, scale, *others = node.inputs(5)
        shift, bias = ("", others[0]) if simplified else others
        y, mean, inverse, total = node.outputs(4)
        if mean and simplified:
            raise UnsupportedForm("its output 'mean' is not supported")
        value = build.node("Add", x, skip, result="" if bias else total)
        if bias:
            value = build.node("Add", value, bias, result=total)
        epsilon = node.get("epsilon", 1e-12)
        if simplified:
            means = Means(build, [-1], node.dtype(scale))
            means.divide_by_root(means.widen(value), epsilon, scale, "", y, inverse)
            return
        build.many("LayerNormalization", [value, scale, shift], [y, mean, inverse], epsilon=epsilon)

    return rule


def _embed(node: NodeView, build: NodeBuilder) -> None:
    """Build the normalised sum of the embeddings of words, places and segments; positions count from 0 by default."""
    ids, segments, words, places, kinds, scale, shift, mask, positions = node.inputs(9)
    y, index, total = node.outputs(3)
    if index and node.get("mask_index_type", 1) == 0:
        raise UnsupportedForm("its attribute 'mask_index_type' is 0")
    batch, tokens = (build.node("Gather", build.node("Shape", ids), build.integers(axis)) for axis in (0, 1))
    if not positions:
        count = build.node("Squeeze", tokens, build.integers(0))
        positions = build.node("Unsqueeze", count_to(count, build), build.integers(0))
    else:
        positions = build.from_zero(positions, np.int32)
    words = build.node("Gather", words, build.from_zero(ids, np.int32))
    value = build.node("Add", words, build.node("Gather", places, positions))
    if segments:
        value = build.node("Add", value, build.node("Gather", kinds, build.from_zero(segments, np.int32)))
    if total:
        value = build.node("Identity", value, result=total)
    build.node("LayerNormalization", value, scale, shift, epsilon=node.get("epsilon", 1e-12), result=y)
    if index and mask:
        counted = build.node("ReduceSum", mask, build.integers(1), keepdims=0)
        build.cast(counted, np.int32, index)
    elif index:
        build.cast(build.node("ConstantOfShape", batch), np.int32, index)


RULES: dict[str, Rule] = {
    "BiasGelu": _gelu,
    "EmbedLayerNormalization": _embed,
    "FastGelu": _fast_gelu,
    "Gelu": _gelu,
    "LayerNormalization": own,
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": _simplified,
    "SkipLayerNormalization": _skip(simplified=False),
    "SkipSimplifiedLayerNormalization": _skip(simplified=True),
}
