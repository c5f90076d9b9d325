"""Transformers that our other tables lack: T5, Whisper's encoder, gated attention."""

from __future__ import annotations

import math

import numpy as np
import onnx

from .graph import INT64, Graph


def t5_encoder(width: int = 64, tokens: int = 32, layers: int = 2, heads: int = 4, opset: int = 17) -> onnx.ModelProto:
    """T5 (Raffel et al., 2020): RMS norms of powers and means, a bias by relative position, no scaling, gated GELU."""
    net = Graph("t5_encoder", opset)
    x = net.embedding(net.input("input_ids", 1, tokens, kind=INT64), 500, width)
    mask = net.reshape(
        net.scale("Mul", net.node("Sub", net.constant(1.0), net.input("attention_mask", 1, tokens)), -1e4),
        1,
        1,
        1,
        tokens,
    )
    bias = net.node("Add", _relative_bias(net, tokens, heads), mask)
    for _ in range(layers):
        y = _rms_norm(net, x)
        query, key, value = (
            net.reshape(net.linear(y, width, bias=False), 1, tokens, heads, width // heads) for _ in range(3)
        )
        scores = net.node("MatMul", net.transpose(query, 0, 2, 1, 3), net.transpose(key, 0, 2, 3, 1))
        shares = net.node("Softmax", net.node("Add", net.scale("Mul", scores, 0.1), bias), axis=-1)
        seen = net.transpose(net.node("MatMul", shares, net.transpose(value, 0, 2, 1, 3)), 0, 2, 1, 3)
        x = net.node("Add", x, net.linear(net.reshape(seen, 1, tokens, width), width, bias=False))
        y = _rms_norm(net, x)
        gated = net.node(
            "Mul", _tanh_gelu(net, net.linear(y, 2 * width, bias=False)), net.linear(y, 2 * width, bias=False)
        )
        x = net.node("Add", x, net.linear(gated, width, bias=False))
    return net.model(_rms_norm(net, x))


def _rms_norm(net: Graph, x: str) -> str:
    square = net.scale("Pow", x, 2.0)
    mean = (
        net.node("ReduceMean", square, axes=[-1])
        if net.opset < 18
        else net.node("ReduceMean", square, net.integers(-1))
    )
    root = net.node("Sqrt", net.scale("Add", mean, 1e-6))
    return net.node("Mul", net.near_one(net.shape(x)[-1]), net.node("Mul", x, net.node("Div", net.constant(1.0), root)))


def _tanh_gelu(net: Graph, x: str) -> str:
    inner = net.node("Add", x, net.scale("Mul", net.scale("Pow", x, 3.0), 0.044715))
    tanh = net.node("Tanh", net.scale("Mul", inner, math.sqrt(2 / math.pi)))
    return net.node("Mul", net.scale("Mul", x, 0.5), net.scale("Add", tanh, 1.0))


def _relative_bias(net: Graph, tokens: int, heads: int) -> str:
    """Look up the bias of each pair of tokens by their distance, as exporters leave it."""
    distance = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]
    far = 8 + (np.log(np.maximum(np.abs(distance), 1) / 8) / math.log(16) * 8).astype(np.int64)
    bucket = np.where(distance > 0, 16, 0) + np.where(np.abs(distance) < 8, np.abs(distance), np.minimum(far, 15))
    found = net.node("Gather", net.normal(32, heads), net.constant(bucket, np.int64))
    return net.node("Unsqueeze", net.transpose(found, 2, 0, 1), net.integers(0))


def whisper_encoder(
    width: int = 64, frames: int = 100, layers: int = 2, heads: int = 4, opset: int = 17
) -> onnx.ModelProto:
    """Whisper's encoder (Radford et al., 2023): two 1-D convolutions, GELU by Erf or as one node, attention, norms first."""
    net = Graph("whisper_encoder", opset)
    x = _gelu(net, net.conv(net.input("input_features", 1, 40, frames), width, 3))
    x = net.transpose(_gelu(net, net.conv(x, width, 3, stride=2)), 0, 2, 1)
    tokens = net.shape(x)[1]
    x = net.node("Add", x, net.normal(tokens, width))
    for _ in range(layers):
        y = net.layer_norm(x)
        query = net.scale("Mul", net.linear(y, width), 1 / math.sqrt(width // heads))
        key, value = net.linear(y, width, bias=False), net.linear(y, width)
        query, key, value = (
            net.transpose(net.reshape(each, 1, tokens, heads, width // heads), 0, 2, 1, 3)
            for each in (query, key, value)
        )
        shares = net.node("Softmax", net.node("MatMul", query, net.transpose(key, 0, 1, 3, 2)), axis=-1)
        seen = net.reshape(net.transpose(net.node("MatMul", shares, value), 0, 2, 1, 3), 1, tokens, width)
        x = net.node("Add", x, net.linear(seen, width))
        x = net.node("Add", x, net.linear(_gelu(net, net.linear(net.layer_norm(x), 4 * width)), width))
    return net.model(net.layer_norm(x))


def _gelu(net: Graph, x: str) -> str:
    if net.opset >= 20:
        return net.node("Gelu", x)
    erf = net.scale("Add", net.node("Erf", net.scale("Div", x, math.sqrt(2))), 1.0)
    return net.scale("Mul", net.node("Mul", x, erf), 0.5)


def gated_attention(width: int = 64, tokens: int = 64, layers: int = 2, words: int = 100) -> onnx.ModelProto:
    """Gated attention unit (Hua et al., 2022) over characters: squared ReLU scores, one head, gates by swish."""
    net = Graph("gated_attention")
    x = net.embedding(net.input("characters", 1, tokens, kind=INT64), words, width)
    for _ in range(layers):
        y = net.layer_norm(x)
        gate, value, shared = net.split(net.swish(net.linear(y, 4 * width + 32)), 2 * width, 2 * width, 32, axis=2)
        query, key = (net.node("Add", net.node("Mul", shared, net.near_one(32)), net.near_zero(32)) for _ in range(2))
        scores = net.scale("Div", net.node("MatMul", query, net.transpose(key, 0, 2, 1)), float(tokens) ** 0.5)
        scores = net.node("Relu", scores)
        seen = net.node("MatMul", net.node("Mul", scores, scores), value)
        x = net.node("Add", x, net.linear(net.node("Mul", gate, seen), width))
    return net.model(net.linear(net.layer_norm(x), words))
