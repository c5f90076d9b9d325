"""Convolutions over time, with every padding: WaveNet, dilated stacks, Demucs, word segmentation."""

from __future__ import annotations

import onnx

from .graph import INT64, Graph


def causal_conv(channels: int = 16, length: int = 400, layers: int = 6) -> onnx.ModelProto:
    """WaveNet (van den Oord et al., 2016): padding on the left, gates, residuals and a sum of skips."""
    net = Graph("causal_conv", opset=18)
    x, skips = net.conv(net.input("wave", 1, 1, length), channels, 1), None
    for layer in range(layers):
        dilation = 2**layer
        both = net.conv(net.pad(x, dilation, 0), 2 * channels, 2, dilation=dilation, padding=0, gain=1.0)
        filtered, gate = net.split(both, channels, channels, axis=1)
        gated = net.node("Mul", net.node("Tanh", filtered), net.node("Sigmoid", gate))
        x = net.node("Add", x, net.conv(gated, channels, 1, gain=1.0))
        skip = net.conv(gated, 2 * channels, 1, gain=1.0)
        skips = skip if skips is None else net.node("Add", skips, skip)
    x = net.node("Relu", net.conv(net.node("Relu", skips), 2 * channels, 1))
    return net.model(net.conv(x, 32, 1))


def circular_conv(channels: int = 16, length: int = 500, layers: int = 4) -> onnx.ModelProto:
    """Dilated residual stack over a ring: a slice of the end, the whole, a slice of the start, concatenated."""
    net = Graph("circular_conv")
    x = net.conv(net.input("signal", 1, 1, length), channels, 7)
    for layer in range(layers):
        dilation = 2**layer
        padded = _around(net, x, dilation)
        y = net.node("Relu", net.batch_norm(net.conv(padded, channels, 3, dilation=dilation, padding=0, bias=False)))
        y = net.conv(_around(net, y, 1), channels, 3, padding=0, gain=1.0)
        x = net.node("Relu", net.node("Add", x, y))
    return net.model(net.node("Sigmoid", net.conv(x, 1, 1, gain=1.0)))


def _around(net: Graph, x: str, count: int) -> str:
    length = net.shape(x)[2]
    return net.node("Concat", net.slice(x, length - count, length, 2), x, net.slice(x, 0, count, 2), axis=2)


def reflected_conv(channels: int = 16, length: int = 500, layers: int = 3) -> onnx.ModelProto:
    """Dilated convolutions of HiFi-GAN's kind (Kong et al., 2020), padded by reflection and by their edge."""
    net = Graph("reflected_conv")
    x = net.conv(net.pad(net.input("mel", 1, 20, length), 3, 3, "reflect"), channels, 7, padding=0)
    for layer in range(layers):
        dilation = 3**layer
        y = net.node("LeakyRelu", x, alpha=0.1)
        y = net.conv(net.pad(y, dilation, dilation, "reflect"), channels, 3, dilation=dilation, padding=0)
        y = net.conv(net.pad(net.node("LeakyRelu", y, alpha=0.1), 2, 2, "edge"), channels, 5, padding=0, gain=1.0)
        x = net.node("Add", x, y)
    return net.model(net.node("Tanh", net.conv(net.pad(x, 3, 3, "reflect"), 1, 7, padding=0, gain=1.0)))


def encoder_decoder_1d(channels: int = 16, length: int = 2048, depth: int = 3) -> onnx.ModelProto:
    """Demucs (Défossez et al., 2019): strided convolutions, gated linear units, transposed convolutions, skips."""
    net = Graph("encoder_decoder_1d")
    x, skips = net.input("wave", 1, 2, length), []
    for level in range(depth):
        wide = channels * 2**level
        x = net.node("Relu", net.conv(x, wide, 8, stride=4, padding=2))
        x = _gated_unit(net, net.conv(x, 2 * wide, 1))
        skips.append(x)
    for level in reversed(range(depth)):
        x = net.node("Add", x, skips[level])
        x = _gated_unit(net, net.conv(x, 2 * channels * 2**level, 3))
        x = net.conv_transpose(x, channels * 2 ** (level - 1) if level else 2, 8, 4, 2)
        x = net.node("Relu", x) if level else x
    return net.model(x)


def _gated_unit(net: Graph, x: str) -> str:
    half = net.shape(x)[1] // 2
    value, gate = net.split(x, half, half, axis=1)
    return net.node("Mul", value, net.node("Sigmoid", gate))


def embedded_conv(width: int = 16, tokens: int = 128, layers: int = 3) -> onnx.ModelProto:
    """Word segmentation from two rows of ids (AttaCut): embeddings, selected and joined, then dilated convolutions."""
    net = Graph("embedded_conv", opset=13)
    ids = net.input("ids", 1, 2, tokens, kind=INT64)
    parts = []
    for row, words in enumerate((180, 2000)):
        picked = net.node("Gather", ids, net.constant(row, "int64"), axis=1)
        parts.append(net.embedding(picked, words, width))
    x = net.transpose(net.node("Concat", *parts, axis=2), 0, 2, 1)
    found = [net.node("Relu", net.conv(x, 2 * width, 3, dilation=2**layer)) for layer in range(layers)]
    x = net.transpose(net.node("Add", net.node("Add", found[0], found[1]), found[2]), 0, 2, 1)
    x = net.node("Relu", net.linear(x, 2 * width, gain=2.0))
    return net.model(net.node("Sigmoid", net.linear(x, 1)))
