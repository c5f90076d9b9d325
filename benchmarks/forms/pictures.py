"""Networks over pictures: encoder-decoders, U-Net with attention, style transfer, shuffles and squeezes, deformable tails."""

from __future__ import annotations

import math

import numpy as np
import onnx

from .graph import Graph


def encoder_decoder_2d(channels: int = 16, side: int = 40, depth: int = 2) -> onnx.ModelProto:
    """Mask decoder of a segmenting YOLO: strided convolutions with swish, then transposed ones, then coefficients."""
    net = Graph("encoder_decoder_2d")
    x = net.input("images", 1, 3, side * 2, side * 2)
    for level in range(depth):
        x = net.swish(net.conv(x, channels * 2**level, 3, stride=2))
        x = net.swish(net.conv(x, channels * 2**level, 3))
    for _ in range(depth - 1):
        x = net.swish(net.conv(x, net.shape(x)[1], 3))
        x = net.conv_transpose(x, net.shape(x)[1], 2, 2)
        x = net.swish(net.conv(x, net.shape(x)[1], 3))
    return net.model(net.swish(net.conv(x, 16, 1)))


def unet_einsum(channels: int = 16, side: int = 32, depth: int = 2) -> onnx.ModelProto:
    """U-Net of a diffusion model: group norms as instance norms, swish, linear attention by Einsum, skips."""
    net = Graph("unet_einsum")
    x, skips = net.conv(net.input("sample", 1, 4, side, side), channels, 3), []
    for level in range(depth):
        x = _residual(net, x, channels * 2**level)
        skips.append(x)
        x = net.conv(x, net.shape(x)[1], 3, stride=2, gain=1.0)
    x = _residual(net, _einsum_attention(net, _residual(net, x, net.shape(x)[1])), net.shape(x)[1])
    for level in reversed(range(depth)):
        x = _repeated_pixels(net, x)
        x = _residual(net, net.node("Concat", x, skips[level], axis=1), channels * 2**level)
    return net.model(net.conv(net.swish(_group_norm(net, x)), 4, 3, gain=1.0))


def _repeated_pixels(net: Graph, x: str) -> str:
    """Double height and width."""
    nearest = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    return net.node("Resize", x, "", net.constant([1, 1, 2, 2]), **nearest)


def _group_norm(net: Graph, x: str, groups: int = 8) -> str:
    """Normalise groups of channels as PyTorch exports it: an instance norm of a reshaped picture."""
    shape, count = net.shape(x), net.shape(x)[1]
    one, zero = net.constant(np.ones(groups)), net.constant(np.zeros(groups))
    y = net.node("InstanceNormalization", net.reshape(x, 0, groups, -1), one, zero, epsilon=1e-5)
    y = net.node("Mul", net.reshape(y, *shape), net.near_one(count, 1, 1))
    return net.node("Add", y, net.near_zero(count, 1, 1))


def _residual(net: Graph, x: str, channels: int) -> str:
    y = net.conv(net.swish(_group_norm(net, x)), channels, 3)
    y = net.conv(net.swish(_group_norm(net, y)), channels, 3, gain=1.0)
    return net.node("Add", y, x if net.shape(x)[1] == channels else net.conv(x, channels, 1, gain=1.0))


def _einsum_attention(net: Graph, x: str, heads: int = 4) -> str:
    _, count, high, wide = net.shape(x)
    every = net.reshape(net.conv(_group_norm(net, x), 3 * count, 1, gain=1.0), 1, 3, heads, count // heads, high * wide)
    query, key, value = (net.node("Squeeze", each, net.integers(1)) for each in net.split(every, 1, 1, 1, axis=1))
    scores = net.node("Einsum", net.scale("Mul", query, 1 / math.sqrt(count // heads)), key, equation="bhci,bhcj->bhij")
    seen = net.node("Einsum", net.node("Softmax", scores, axis=-1), value, equation="bhij,bhcj->bhci")
    return net.node("Add", x, net.conv(net.reshape(seen, 1, count, high, wide), count, 1, gain=1.0))


def style_transfer(channels: int = 8, side: int = 48, blocks: int = 2) -> onnx.ModelProto:
    """Fast style transfer (Johnson et al., 2016): reflected pads, instance norms, residual blocks, repeated pixels."""
    net = Graph("style_transfer", opset=13)

    def layer(x: str, count: int, kernel: int, stride: int = 1) -> str:
        half = kernel // 2
        y = net.conv(net.pad(x, half, half, "reflect", axes=2), count, kernel, stride=stride, padding=0)
        return net.node("InstanceNormalization", y, net.near_one(count), net.near_zero(count), epsilon=1e-5)

    x = net.node("Relu", layer(net.input("content", 1, 3, side, side), channels, 9))
    x = net.node("Relu", layer(x, 2 * channels, 3, 2))
    x = net.node("Relu", layer(x, 4 * channels, 3, 2))
    for _ in range(blocks):
        x = net.node("Add", layer(net.node("Relu", layer(x, 4 * channels, 3)), 4 * channels, 3), x)
    for factor in (2, 1):
        x = _repeated_pixels(net, x)
        x = net.node("Relu", layer(x, factor * channels, 3))
    return net.model(net.conv(net.pad(x, 4, 4, "reflect", axes=2), 3, 9, padding=0, gain=1.0))


def shuffled_squeeze(channels: int = 32, side: int = 28, units: int = 3) -> onnx.ModelProto:
    """Units of ShuffleNet V2 (Ma et al., 2018), each with squeeze and excitation (Hu et al., 2018)."""
    net = Graph("shuffled_squeeze", opset=18)
    x = net.node(
        "Relu", net.batch_norm(net.conv(net.input("x", 1, 3, 2 * side, 2 * side), channels, 3, stride=2, bias=False))
    )
    for _ in range(units):
        kept, other = net.split(x, channels // 2, channels // 2, axis=1)
        other = net.node("Relu", net.batch_norm(net.conv(other, channels // 2, 1, bias=False)))
        other = net.batch_norm(net.conv(other, channels // 2, 3, groups=channels // 2, bias=False, gain=1.0))
        other = net.node("Relu", net.batch_norm(net.conv(other, channels // 2, 1, bias=False)))
        x = _shuffle(net, net.node("Concat", kept, _squeeze_excite(net, other), axis=1))
    x = net.node("ReduceMean", x, net.integers(2, 3), keepdims=0)
    return net.model(net.node("Gemm", x, net.normal(10, channels, fan_in=channels), net.near_zero(10), transB=1))


def _shuffle(net: Graph, x: str) -> str:
    _, count, high, wide = net.shape(x)
    return net.reshape(net.transpose(net.reshape(x, 1, 2, count // 2, high, wide), 0, 2, 1, 3, 4), 1, count, high, wide)


def _squeeze_excite(net: Graph, x: str) -> str:
    count = net.shape(x)[1]
    gate = net.node("ReduceMean", x, net.integers(2, 3), keepdims=1)
    gate = net.node(
        "HardSigmoid",
        net.conv(net.node("Relu", net.conv(gate, max(4, count // 4), 1)), count, 1, gain=1.0),
        alpha=1 / 6,
    )
    return net.node("Mul", x, gate)


def deformable_tail(channels: int = 16, side: int = 24, queries: int = 32) -> onnx.ModelProto:
    """Tail of Deformable DETR (Zhu et al., 2021): the best places by TopK and GatherND, then samples by GridSample."""
    net = Graph("deformable_tail", opset=16)
    x = net.node("Relu", net.conv(net.input("features", 1, channels, side, side), channels, 3))
    tokens = net.transpose(net.reshape(x, channels, side * side), 1, 0)
    score = net.reshape(net.linear(tokens, 1), side * side)
    _, best = net.nodes("TopK", score, net.integers(queries), outputs=2, axis=0, largest=1)
    picked = net.node("GatherND", tokens, net.node("Unsqueeze", best, net.integers(1)))
    points = 4
    offsets = net.node("Tanh", net.linear(picked, 2 * points))
    grid = net.reshape(offsets, 1, queries, points, 2)
    sampled = net.node("GridSample", x, grid, mode="bilinear", padding_mode="zeros", align_corners=0)
    weights = net.reshape(net.node("Softmax", net.linear(picked, points), axis=-1), 1, 1, queries, points)
    mixed = net.node("ReduceSum", net.node("Mul", sampled, weights), net.integers(3), keepdims=0)
    seen = net.node("Add", picked, net.linear(net.transpose(net.reshape(mixed, channels, queries), 1, 0), channels))
    return net.model(net.node("Sigmoid", net.linear(net.node("Relu", net.linear(seen, 2 * channels)), 4)))
