"""Operators on single elements, with broadcasting."""

from __future__ import annotations

import numpy as np

from ..draw import DTYPES, Draw, Illegal

PLAIN = (
    "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Identity", "IsNaN", "Mish", "Neg", "Not",
    "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Tanh", "BitwiseNot", "Atan", "Asinh", "Cosh", "Sinh",
    "Tan", "Sqrt", "Log", "Reciprocal", "Acosh", "Asin", "Acos", "Atanh",
)  # fmt: skip
#: attributes of an activation: floats in a range
ATTRIBUTES = {
    "Elu": {"alpha": (-2, 2)}, "Celu": {"alpha": (0.1, 3)}, "LeakyRelu": {"alpha": (-1, 2)}, "ThresholdedRelu": {"alpha": (-1, 2)},
    "HardSigmoid": {"alpha": (-1, 1), "beta": (-1, 1)}, "Selu": {"alpha": (0, 3), "gamma": (0, 3)},
    "Shrink": {"lambd": (-1, 1), "bias": (-1, 1)}, "Swish": {"alpha": (-2, 2)},
}  # fmt: skip
BINARY = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "And",
    "Or",
    "Xor",
    "Equal",
    "Greater",
    "Less",
    "GreaterOrEqual",
    "LessOrEqual",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
)
VARIADIC = ("Max", "Min", "Mean", "Sum")
FLOATS = ("float", "float16", "double", "bfloat16")


def unary(draw: Draw) -> None:
    name = draw.schema.name
    draw.data(draw.dims(0, 5))
    for attribute, (low, high) in ATTRIBUTES.get(name, {}).items():
        draw.attribute(attribute, float(np.float32(draw.random.uniform(low, high))))
    if name == "Gelu":
        draw.attribute("approximate", draw.choice(("none", "tanh")))
    if name == "IsInf":
        draw.attribute("detect_negative", draw.integer(0, 1))
        draw.attribute("detect_positive", draw.integer(0, 1))


def binary(draw: Draw) -> None:
    shape = draw.dims(0, 5)
    shapes = [shape, draw.broadcast(shape)]
    if draw.chance():
        shapes.reverse()
    name = draw.schema.name
    draw.data(shapes[0])
    whole = draw.dtype().kind in "iu"
    draw.data(shapes[1], 1, *((1, 9) if name in ("Div", "Mod") and whole else (None, None)))


def modulo(draw: Draw) -> None:
    binary(draw)
    if draw.dtype().kind == "f" or draw.dtype() == DTYPES["bfloat16"]:
        draw.attributes["fmod"] = 1
    else:
        draw.attribute("fmod", draw.integer(0, 1))


def power(draw: Draw) -> None:
    shape = draw.dims(0, 4)
    draw.data(shape, 0, -3, 3) if draw.dtype().kind not in "u" else draw.data(shape, 0, 0, 3)
    value = draw.values(draw.broadcast(shape), draw.dtype(1), 0, 3)
    draw.give(np.round(value).astype(value.dtype) if draw.chance() else value)


def shift(draw: Draw) -> None:
    shape = draw.dims(0, 4)
    draw.data(shape)
    draw.data(draw.broadcast(shape), 1, 0, 7)
    draw.attributes["direction"] = draw.choice(("LEFT", "RIGHT"))


def variadic(draw: Draw) -> None:
    shape = draw.dims(0, 4)
    for number in range(draw.integer(1, 4)):
        draw.data(draw.broadcast(shape) if number and draw.version >= 8 else shape)


def prelu(draw: Draw) -> None:
    shape = draw.dims(1, 4)
    draw.data(shape)
    slope = draw.broadcast(shape)
    draw.data(slope, 1)


def where(draw: Draw) -> None:
    shape = draw.dims(0, 4)
    shapes = [draw.broadcast(shape) for _ in range(3)]
    shapes[draw.integer(0, 2)] = shape
    draw.give(draw.values(shapes[0], DTYPES["bool"]))
    draw.data(shapes[1], 1)
    draw.data(shapes[2], 2)


def clip(draw: Draw) -> None:
    draw.data(draw.dims(0, 4))
    bounds = sorted(draw.values((2,), draw.dtype(), *((0, 5) if draw.dtype().kind == "u" else (-3, 3))).tolist())
    if draw.has("min"):
        draw.attribute("min", float(bounds[0]))
        draw.attribute("max", float(bounds[1]))
        return
    for bound in bounds:
        draw.give(np.asarray(bound, draw.dtype()) if draw.chance(0.75) else None)


def cast(draw: Draw) -> None:
    source, shape = draw.dtype(), draw.dims(0, 4)
    names = sorted(DTYPES)
    goal = draw.choice(names)
    whole = DTYPES[goal].kind in "iu"
    draw.data(
        shape, 0, *((0 if "u" in goal or source.kind == "u" else -100, 100) if whole or draw.chance() else (None, None))
    )
    if whole and source.kind not in "iubf" and source != DTYPES["bfloat16"]:
        raise Illegal(goal)
    if draw.schema.name == "CastLike":
        draw.give(draw.values((1,), DTYPES[goal]))
    else:
        from onnx import helper

        draw.attributes["to"] = helper.np_dtype_to_tensor_dtype(DTYPES[goal])


def dropout(draw: Draw) -> None:
    draw.data(draw.dims(1, 4))
    draw.attribute("ratio", 0.4)
    draw.results = draw.integer(1, 2)


TABLE = {
    **dict.fromkeys((*PLAIN, *ATTRIBUTES, "Gelu", "IsInf"), unary),
    **dict.fromkeys(BINARY, binary), **dict.fromkeys(VARIADIC, variadic), "Mod": modulo, "Pow": power, "BitShift": shift,
    "PRelu": prelu, "Where": where, "Clip": clip, "Cast": cast, "CastLike": cast, "Dropout": dropout,
}  # fmt: skip
