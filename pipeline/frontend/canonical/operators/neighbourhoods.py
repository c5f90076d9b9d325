"""Rewrite operators over windows that TVM's importer reads in some forms only.

LRN          float64, even sizes, other ranks: the sum of the squares of channels beside, slice by slice
LpPool       padding as a node of its own: TVM takes a mean, over fewer elements at the edges
MaxUnpool    a scatter into zeros
Col2Im       a transposed convolution by ones
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..node_builder import NodeBuilder
from .activations import widen
from .auto_pad import SAME, same_pads

if TYPE_CHECKING:
    from ..graph_context import NodeView


def local_response(node: NodeView, build: NodeBuilder) -> None:
    """Replace LRN by x / (bias + alpha / size · sum)^beta."""
    x, dtype, size = node.input[0], node.dtype(0), int(node.attributes["size"])
    shape = node.shape(x)
    if shape is None or size < 1 or (dtype == np.float32 and size % 2 and len(shape) in (3, 4)):
        return
    before, rank = (size - 1) // 2, len(shape)
    widths = [0] * (2 * rank)
    widths[1], widths[rank + 1] = before, size - 1 - before
    padded = build.node("Pad", build.node("Mul", x, x), build.integers(*widths))
    total = ""
    for first in range(size):
        part = build.node("Slice", padded, build.integers(first), build.integers(first + shape[1]), build.integers(1))
        total = build.node("Add", total, part) if total else part
    scale, bias, beta = (
        build.number(each, dtype)
        for each in (node.get("alpha", 1e-4) / size, node.get("bias", 1.0), node.get("beta", 0.75))
    )
    power = build.node("Pow", build.node("Add", build.node("Mul", total, scale), bias), beta)
    build.node("Div", x, power, result=node.result)


def lp_pool(node: NodeView, build: NodeBuilder) -> None:
    """Pad the operand of an LpPool by zeros, as far as its windows reach; compute float16 in float32."""
    shape, result = node.shape(0), node.shape(node.result)
    automatic = node.get("auto_pad", "NOTSET")
    sizes = list(node.attributes["kernel_shape"])
    if shape is None or result is None:
        return
    pads = same_pads(node.attributes, shape) if automatic in SAME else list(node.get("pads", [0] * 2 * len(sizes)))
    if not (node.dtype(0) == np.float16 or any(pads) or node.get("ceil_mode") or automatic in SAME):
        return
    ones = [1] * len(sizes)
    strides, dilations = (list(node.get(name, ones)) for name in ("strides", "dilations"))
    befores, afters = pads[: len(sizes)], pads[len(sizes) :]
    if automatic not in SAME:
        reaches = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations)]
        wholes = [(count - 1) * stride + reach for count, stride, reach in zip(result[2:], strides, reaches)]
        afters = [whole - size - before for whole, size, before in zip(wholes, shape[2:], befores)]
    x, _, wrap = widen(node, build)
    padded = build.node("Pad", x, build.integers(0, 0, *befores, 0, 0, *afters))
    kept = {name: value for name, value in node.attributes.items() if name not in ("auto_pad", "pads", "ceil_mode")}
    wrap("LpPool", padded, **kept)


def max_unpool(node: NodeView, build: NodeBuilder) -> None:
    """Replace MaxUnpool by a scatter along one line; places count elements of the result."""
    result, dtype = node.shape(node.result), node.dtype(0)
    if result is None:
        return
    line = build.integers(-1)
    zeros = build.node("Expand", build.number(0, dtype), build.integers(math.prod(result)))
    values, places = (build.node("Reshape", name, line) for name in node.input[:2])
    filled = build.node("ScatterElements", zeros, build.from_zero(places, np.int64), values, axis=0)
    build.node("Reshape", filled, build.integers(*result), result=node.result)


def columns_to_image(node: NodeView, build: NodeBuilder) -> None:
    """Replace Col2Im by a transposed convolution: each element of a block has a filter with a single one, at its place."""
    shape, image, block = node.shape(0), *(node.constant(name) for name in node.input[1:])
    if shape is None or image is None or block is None:
        return
    rank, elements = len(block), math.prod(block.tolist())
    ones = [1] * rank
    strides, dilations = (list(node.get(name, ones)) for name in ("strides", "dilations"))
    pads = list(node.get("pads", [0] * 2 * rank))
    reaches = [(size - 1) * dilation + 1 for size, dilation in zip(block.tolist(), dilations)]
    room = [extent + before + after for extent, before, after in zip(image.tolist(), pads[:rank], pads[rank:])]
    counts = [(extent - reach) // stride + 1 for extent, reach, stride in zip(room, reaches, strides)]
    rest = [(extent - reach) % stride for extent, reach, stride in zip(room, reaches, strides)]
    channels = shape[1] // elements
    filters = np.eye(elements, dtype=node.dtype(0)).reshape(1, elements, 1, *block.tolist())
    weights = build.constant(np.repeat(filters, channels, axis=0).reshape(-1, 1, *block.tolist()))
    blocks = build.node("Reshape", node.input[0], build.integers(*shape[:2], *counts))
    options = {"group": channels, "strides": strides, "dilations": dilations, "pads": pads, "output_padding": rest}
    build.node("ConvTranspose", blocks, weights, result=node.result, **options)
