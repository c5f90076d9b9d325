"""Recurrence behind convolutions: spectrograms, recognisers of text, additive attention; as nodes and as unrolled cells."""

from __future__ import annotations

import numpy as np
import onnx

from .graph import INT64, Graph

#: gates by operator
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def spectrogram_lstm(channels: int = 8, frames: int = 100, bins: int = 60, units: int = 32) -> onnx.ModelProto:
    """Convolution, ReLU and transpose over a spectrogram, then an LSTM node, as tf2onnx writes it."""
    net = Graph("spectrogram_lstm", opset=15)
    x = net.transpose(net.input("x", 1, frames, bins, 1), 0, 3, 1, 2)
    x = net.node("Relu", net.conv(x, channels, (3, 5)))
    x = net.node("MaxPool", x, kernel_shape=[1, 2], strides=[1, 2])
    x = net.node("Relu", net.conv(x, channels, 3))
    x = net.reshape(net.transpose(x, 0, 2, 3, 1), 1, frames, channels * (bins // 2))
    last = _lstm(net, net.transpose(x, 1, 0, 2), units)[1]
    return net.model(net.node("Sigmoid", net.linear(net.node("Squeeze", last, net.integers(0)), 3)))


def _lstm(net: Graph, x: str, units: int, directions: int = 1) -> list[str]:
    """Append an LSTM node that starts from zeros; its input has the steps first."""
    start = net.constant(np.zeros((directions, 1, units)))
    return _recurrent(net, "LSTM", x, units, directions, "", start, start)


def _recurrent(net: Graph, op: str, x: str, units: int, directions: int, *more: str, **attributes: object) -> list[str]:
    """Append a recurrent node with `more` inputs behind the biases; its input has the steps first."""
    before, gates = net.shape(x)[2], _GATES[op]
    weights = [net.normal(directions, gates * units, count, fan_in=count) for count in (before, units)]
    return net.nodes(
        op,
        x,
        *weights,
        net.near_zero(directions, 2 * gates * units),
        *more,
        outputs=3 if op == "LSTM" else 2,
        hidden_size=units,
        direction="forward" if directions == 1 else "bidirectional",
        **attributes,
    )


def recurrent_layers(
    op: str, units: int, steps: int, features: int, layers: int = 1, directions: int = 1, batch: int = 1,
    words: int = 0, before: int = 0, classes: int = 16, **attributes: object,
) -> onnx.ModelProto:  # fmt: skip
    """Recurrent layers over features of each step, or over `words`, behind a dense layer of `before` units if asked for."""
    net = Graph("recurrent_layers", opset=14)
    if words:
        x = net.embedding(net.input("ids", batch, steps, kind=INT64), words, features)
    else:
        x = net.input("x", batch, steps, features)
    x = net.node("Relu", net.linear(x, before)) if before else x
    x = net.transpose(x, 1, 0, 2)
    for _ in range(layers):
        x = _recurrent(net, op, x, units, directions, **attributes)[0]
        x = net.reshape(net.transpose(x, 0, 2, 1, 3), 0, 0, -1)
    return net.model(net.linear(net.transpose(x, 1, 0, 2), classes))


def conv_recurrent(op: str, channels: int, units: int, frames: int, bins: int, **attributes: object) -> onnx.ModelProto:
    """Convolutions along time, then a recurrent layer of which the last state is read."""
    net = Graph("conv_recurrent", opset=14)
    x = net.input("x", 1, bins, frames)
    for _ in range(2):
        x = net.node("Relu", net.conv(x, channels, 5))
    last = _recurrent(net, op, net.transpose(x, 2, 0, 1), units, 1, **attributes)[1]
    return net.model(net.linear(net.node("Squeeze", last, net.integers(0)), 12))


def crnn_nodes(channels: int = 32, high: int = 32, wide: int = 100, units: int = 128) -> onnx.ModelProto:
    """CRNN whose two bidirectional LSTMs are nodes."""
    net = Graph("crnn_nodes", opset=14)
    x = net.input("image", 1, 1, high, wide)
    for level in range(2):
        x = net.node("Relu", net.conv(x, channels * 2**level, 3))
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    while net.shape(x)[2] > 1:
        x = net.node("Relu", net.conv(x, 2 * channels, 3))
        x = net.node("MaxPool", x, kernel_shape=[2, 1], strides=[2, 1])
    x = net.transpose(net.node("Squeeze", x, net.integers(2)), 2, 0, 1)
    for _ in range(2):
        x = _recurrent(net, "LSTM", x, units, 2)[0]
        x = net.reshape(net.transpose(x, 0, 2, 1, 3), 0, 0, -1)
    return net.model(net.node("LogSoftmax", net.linear(x, 37), axis=-1))


def lstm_autoencoder(units: int = 64, steps: int = 100, features: int = 16) -> onnx.ModelProto:
    """Autoencoder of a sequence (Malhotra et al., 2016): the last state of one LSTM is each input of another."""
    net = Graph("lstm_autoencoder", opset=14)
    x = net.transpose(net.input("x", 1, steps, features), 1, 0, 2)
    last = _recurrent(net, "LSTM", x, units, 1)[1]
    again = net.node("Expand", last, net.integers(steps, 1, units))
    y = net.node("Squeeze", _recurrent(net, "LSTM", again, units, 1)[0], net.integers(1))
    return net.model(net.linear(y, features))


def unrolled_lstm(frames: int = 20, bins: int = 40, units: int = 32) -> onnx.ModelProto:
    """Convolution over time, then an LSTM unrolled into a cell for each frame: slices, products, splits, gates."""
    net = Graph("unrolled_lstm")
    x = net.node("Relu", net.conv(net.input("spectrogram", 1, bins, frames), 2 * units, 5))
    x = net.transpose(x, 2, 0, 1)
    states = _unrolled(
        net, [net.node("Gather", x, net.constant(frame, np.int64), axis=0) for frame in range(frames)], units
    )
    return net.model(net.linear(states[-1], 8))


def _unrolled(net: Graph, steps: list[str], units: int) -> list[str]:
    """Append the cells of an LSTM over `steps`, each 1 × features; return the states."""
    before = net.shape(steps[0])[1]
    own, past = net.normal(before, 4 * units, fan_in=before), net.normal(units, 4 * units, fan_in=units)
    bias = net.near_zero(4 * units)
    state = memory = net.constant(np.zeros((1, units)))
    found = []
    for step in steps:
        gates = net.node("Add", net.node("Add", net.node("MatMul", step, own), bias), net.node("MatMul", state, past))
        entry, forget, cell, out = net.split(gates, units, units, units, units, axis=1)
        kept = net.node("Mul", net.node("Sigmoid", forget), memory)
        memory = net.node("Add", kept, net.node("Mul", net.node("Sigmoid", entry), net.node("Tanh", cell)))
        state = net.node("Mul", net.node("Sigmoid", out), net.node("Tanh", memory))
        found.append(state)
    return found


def crnn(channels: int = 8, high: int = 16, wide: int = 64, units: int = 24) -> onnx.ModelProto:
    """CRNN (Shi et al., 2017): convolutions and poolings down to one row, a bidirectional LSTM unrolled over columns."""
    net = Graph("crnn")
    x = net.input("image", 1, 1, high, wide)
    for level in range(2):
        x = net.node("Relu", net.conv(x, channels * 2**level, 3))
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    while net.shape(x)[2] > 1:
        x = net.node("Relu", net.batch_norm(net.conv(x, 4 * channels, 3, bias=False)))
        x = net.node("MaxPool", x, kernel_shape=[2, 1], strides=[2, 1])
    x = net.transpose(net.node("Squeeze", x, net.integers(2)), 2, 0, 1)
    columns = net.split(x, *[1] * net.shape(x)[0], axis=0)
    columns = [net.node("Squeeze", each, net.integers(0)) for each in columns]
    forward, backward = _unrolled(net, columns, units), _unrolled(net, columns[::-1], units)[::-1]
    both = [net.node("Concat", *pair, axis=1) for pair in zip(forward, backward)]
    x = net.node("Concat", *(net.node("Unsqueeze", each, net.integers(0)) for each in both), axis=0)
    return net.model(net.node("LogSoftmax", net.linear(x, 37), axis=-1))


def recogniser(channels: int = 8, wide: int = 160, units: int = 24) -> onnx.ModelProto:
    """Recogniser of text in lines: MobileNetV3's blocks (Howard et al., 2019) that halve the height, then a BiLSTM node."""
    net = Graph("recogniser", opset=14)
    x = net.node(
        "HardSwish", net.batch_norm(net.conv(net.input("x", 1, 3, 32, wide), channels, 3, stride=2, bias=False))
    )
    for level, stride in enumerate(((1, 1), (2, 1), (2, 1), (2, 1))):
        count = channels * (level + 1)
        y = net.node("HardSwish", net.batch_norm(net.conv(x, 3 * count, 1, bias=False)))
        y = net.node(
            "HardSwish", net.batch_norm(net.conv(y, 3 * count, 5, stride=stride, groups=3 * count, bias=False))
        )
        y = _excite(net, y) if level % 2 else y
        y = net.batch_norm(net.conv(y, count, 1, bias=False, gain=1.0))
        x = net.node("Add", x, y) if net.shape(x) == net.shape(y) else y
    x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.transpose(net.node("Squeeze", x, net.integers(2)), 2, 0, 1)
    x = _lstm(net, x, units, 2)[0]
    x = net.reshape(net.transpose(x, 0, 2, 1, 3), 0, 0, -1)
    return net.model(net.node("Softmax", net.linear(net.transpose(x, 1, 0, 2), 96), axis=2))


def _excite(net: Graph, x: str) -> str:
    count = net.shape(x)[1]
    gate = net.node("Relu", net.conv(net.node("GlobalAveragePool", x), count // 4, 1))
    return net.node("Mul", x, net.node("HardSigmoid", net.conv(gate, count, 1, gain=1.0), alpha=0.2, beta=0.5))


def additive_attention(width: int = 32, tokens: int = 48, words: int = 60) -> onnx.ModelProto:
    """BiLSTM with additive attention (Bahdanau et al., 2015), for each token a class."""
    net = Graph("additive_attention")
    x = net.embedding(net.input("input_ids", 1, tokens, kind=INT64), words, width)
    x = _lstm(net, net.transpose(x, 1, 0, 2), width, 2)[0]
    x = net.reshape(net.transpose(x, 2, 0, 1, 3), 1, tokens, 2 * width)
    query = net.node("Unsqueeze", net.linear(x, width, bias=False), net.integers(2))
    key = net.node("Unsqueeze", net.linear(x, width), net.integers(1))
    scores = net.linear(net.node("Tanh", net.node("Add", query, key)), 1, bias=False)
    shares = net.node("Softmax", net.node("Squeeze", scores, net.integers(-1)), axis=-1)
    seen = net.node("Concat", net.node("MatMul", shares, x), x, axis=2)
    return net.model(net.linear(net.node("Tanh", net.linear(seen, 2 * width)), 16))
