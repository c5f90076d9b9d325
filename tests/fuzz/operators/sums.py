"""Operators along axes: reductions, softmax, order; quantisation; recurrent layers."""

from __future__ import annotations

import math

import numpy as np

from ..draw import DTYPES, Draw

REDUCTIONS = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
)


def reduction(draw: Draw) -> None:
    shape = draw.dims(0, 4)
    positive = draw.schema.name == "ReduceLogSum"
    draw.data(shape, 0, *((0.1 if draw.dtype().kind not in "iu" else 1, 5) if positive else (None, None)))
    axes = draw.choice((None, [], draw.axes(len(shape)), draw.axes(len(shape)))) if shape else None
    if axes is not None and draw.version < 11:
        axes = [axis % len(shape) for axis in axes] or None
    if axes is not None:
        draw.tell(axes) if draw.takes(1) else draw.attribute("axes", axes or None, 1)
    draw.attribute("keepdims", draw.integer(0, 1))
    draw.attribute("noop_with_empty_axes", draw.integer(0, 1))


def extreme(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    draw.attribute("axis", draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1))
    draw.attribute("keepdims", draw.integer(0, 1))
    draw.attribute("select_last_index", draw.integer(0, 1))


def along_axis(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    draw.attribute(
        "axis",
        draw.axis(len(shape))
        if draw.version >= 11 or draw.schema.name == "LpNormalization"
        else draw.integer(0, len(shape) - 1),
    )
    draw.attribute("p", draw.integer(1, 2))


def running(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    draw.tell(draw.axis(len(shape)), draw.choice(("int32", "int64")))
    draw.attribute("exclusive", draw.integer(0, 1))
    draw.attribute("reverse", draw.integer(0, 1))


def top_k(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    axis = draw.axis(len(shape)) if draw.version >= 11 else draw.integer(0, len(shape) - 1)
    draw.data(shape)
    k = draw.integer(1, shape[axis])
    draw.tell([k]) if draw.takes(1) else draw.attribute("k", k)
    draw.attribute("axis", axis, 1)
    draw.attribute("largest", draw.integer(0, 1))
    draw.results = 2


def quantisation(draw: Draw) -> None:
    name, shape = draw.schema.name, draw.dims(1, 4)
    per_axis = draw.has("axis") and draw.chance(0.4)
    axis = draw.axis(len(shape))
    sizes = (shape[axis],) if per_axis else ()
    goal = draw.dtype(2, ("int8", "uint8", "int16", "uint16", "int32"))
    if name == "DequantizeLinear":
        draw.give(draw.values(shape, goal))
    else:
        draw.data(shape)
    draw.data(sizes, 1, 0.01, 0.2)
    if draw.chance(0.7) or draw.version >= 19:
        draw.give(draw.values(sizes, goal) if goal != np.int32 else np.zeros(sizes, goal))
    if per_axis:
        draw.attributes["axis"] = axis


def dynamic_quantisation(draw: Draw) -> None:
    draw.data(draw.dims(1, 4))
    draw.results = 3


def quantised_layer(draw: Draw) -> None:
    name = draw.schema.name
    if name == "QLinearConv":
        channels, filters, side = draw.integer(1, 4), draw.integer(1, 4), draw.integer(3, 6)
        kernel = draw.integer(1, 3)
        one, other = (1, channels, side, side), (filters, channels, kernel, kernel)
    else:
        inner = draw.integer(1, 6)
        one, other = (draw.integer(1, 4), inner), (inner, draw.integer(1, 4))
    per_filter = (other[0],) if name == "QLinearConv" and draw.chance() else ()
    small = ("int8", "uint8")
    terms = math.prod(other[1:]) if name == "QLinearConv" else other[0]
    for position, (shape, sizes, scale) in enumerate(
        ((one, (), 0.05), (other, per_filter, 0.02), (None, (), 0.05 * terms**0.5))
    ):
        dtype = draw.dtype((0, 3, 7)[position], small)
        if shape is not None:
            draw.give(draw.values(shape, dtype, *((0, 255) if dtype == np.uint8 else (-128, 127))))
        draw.give(draw.values(sizes, np.dtype("float32"), scale, 2 * scale))
        draw.give(
            draw.values(sizes, dtype, *((100, 150) if dtype == np.uint8 else (-20, 20)))
            if not sizes
            else np.full(sizes, 128 if dtype == np.uint8 else 0, dtype)
        )
    if name == "QLinearConv" and draw.chance():
        draw.give(draw.values((other[0],), DTYPES["int32"], -500, 500))
    draw.attribute("pads", [1, 1, 1, 1] if name == "QLinearConv" else None)


def recurrent(draw: Draw) -> None:
    name = draw.schema.name
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    steps, batch, width, hidden = draw.integer(1, 4), draw.integer(1, 2), draw.integer(1, 4), draw.integer(1, 4)
    direction = draw.choice(("forward", "forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    draw.data((steps, batch, width), 0, -1, 1)
    draw.data((ways, gates * hidden, width), 1, -1, 1)
    draw.data((ways, gates * hidden, hidden), 2, -1, 1)
    draw.give(draw.values((ways, 2 * gates * hidden), draw.dtype(), -1, 1) if draw.chance(0.7) else None)
    draw.give(draw.random.integers(1, steps + 1, batch).astype(np.int32) if draw.chance(0.3) else None)
    for _ in range(2 if name == "LSTM" else 1):
        draw.give(draw.values((ways, batch, hidden), draw.dtype(), -1, 1) if draw.chance(0.5) else None)
    if name == "LSTM" and draw.chance(0.3):
        draw.give(draw.values((ways, 3 * hidden), draw.dtype(), -1, 1))
    draw.attributes |= {"hidden_size": hidden, "direction": direction}
    draw.attribute("clip", 0.5, 0.2)
    draw.attribute("linear_before_reset", draw.integer(0, 1))
    draw.attribute("input_forget", draw.integer(0, 1), 0.2)
    if draw.chance(0.2):
        some = ("Tanh", "Relu", "Sigmoid", "Softsign", "Softplus", "HardSigmoid", "LeakyRelu", "Elu")
        draw.attributes["activations"] = [
            draw.choice(some) for _ in range(ways * {"RNN": 1, "GRU": 2, "LSTM": 3}[name])
        ]
    draw.results = draw.integer(1, 3 if name == "LSTM" else 2)


def attention(draw: Draw) -> None:
    batch, heads, width, rows, columns = (
        draw.integer(1, 2),
        draw.choice((1, 2, 4)),
        draw.integer(1, 4),
        draw.integer(1, 4),
        draw.integer(1, 5),
    )
    groups = draw.choice([each for each in (1, 2, 4) if heads % each == 0])
    packed = draw.chance(0.4)
    for position, (count, length) in enumerate(((heads, rows), (groups, columns), (groups, columns))):
        draw.data((batch, length, count * width) if packed else (batch, count, length, width), position, -2, 2)
    if draw.chance(0.4):
        draw.give(
            draw.values((rows, columns), DTYPES["bool"]) | np.eye(rows, columns, dtype=bool) | (np.arange(columns) == 0)
        )
    if packed:
        draw.attributes |= {"q_num_heads": heads, "kv_num_heads": groups}
    draw.attribute("is_causal", draw.integer(0, 1))
    draw.attribute("scale", 0.3)
    draw.attribute("softcap", 2.0, 0.3)


TABLE = {
    **dict.fromkeys(REDUCTIONS, reduction), "ArgMax": extreme, "ArgMin": extreme,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "LpNormalization"), along_axis), "CumSum": running, "CumProd": running, "TopK": top_k,
    "QuantizeLinear": quantisation, "DequantizeLinear": quantisation, "DynamicQuantizeLinear": dynamic_quantisation,
    "QLinearConv": quantised_layer, "QLinearMatMul": quantised_layer, "LSTM": recurrent, "GRU": recurrent, "RNN": recurrent, "Attention": attention,
}  # fmt: skip
