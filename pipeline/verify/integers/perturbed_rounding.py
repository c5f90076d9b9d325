"""Measure how far a quantised model's outputs move if floats are rounded otherwise before they are quantised.

    x ─► QuantizeLinear      becomes      x + noise · max |x| ─► QuantizeLinear

Two right implementations sum floats in other orders. A value between two integers then becomes one or the other, and
every later layer carries the step on. So noise of a few units in the last place says how far outputs may lie apart:
Monte Carlo arithmetic (Parker, UCLA CSD-970002, 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...frontend.canonical.control_flow.loop_bodies import change_bodies
from ...frontend.canonical.graph_context import context_of
from ...frontend.canonical.node_builder import NodeBuilder, build_replacements, spliced
from ...frontend.canonical.shapes import infer_shapes
from ...frontend.traits import QUANTISES
from ..error_bounds import ULPS, largest_difference
from ..reference import Reference

if TYPE_CHECKING:
    import onnx

#: draws of noise
_DRAWS = 4


def perturbed_outputs(
    model: onnx.ModelProto, inputs: Sequence[dict[str, np.ndarray]], expected: Sequence[dict[str, np.ndarray]]
) -> list[dict[str, np.ndarray]]:
    """Evaluate `model` (with inferred shapes) under noise; return each output in the draw farthest from `expected`."""
    farthest = [dict(each) for each in expected]
    for draw in range(_DRAWS):
        reference = Reference(add_noise(model, draw))
        for own, given, best in zip(inputs, expected, farthest, strict=True):
            for name, value in reference(own).items():
                if largest_difference(value, given[name]) > largest_difference(best[name], given[name]):
                    best[name] = value
    return farthest


def moved_outputs(
    model: onnx.ModelProto, inputs: Sequence[dict[str, np.ndarray]]
) -> list[tuple[dict[str, np.ndarray], ...]]:
    """Evaluate `model` on each input once per draw, floats perturbed by a few last-place units."""
    reference = Reference(model)

    def perturb(value: np.ndarray, draw: int) -> np.ndarray:
        if value.dtype.kind != "f":
            return value
        return np.asarray(value * (1 + _noise(np.random.default_rng(draw), value.shape, value.dtype)), value.dtype)

    return [
        tuple(reference({name: perturb(value, draw) for name, value in own.items()}) for draw in range(_DRAWS))
        for own in inputs
    ]


def add_noise(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Return `model` with seeded noise on every float that is quantised."""
    model = change_bodies(model, lambda body: add_noise(infer_shapes(body), seed))
    context = context_of(model)
    random = np.random.default_rng(seed)

    def perturb(node: onnx.NodeProto, build: NodeBuilder) -> None:
        shape = context.shape(node.input[0]) if node.op_type in QUANTISES else None
        if shape is None or context.dtype(node.input[0]) not in (np.float16, np.float32):
            return
        noise = build.constant(_noise(random, shape, context.dtype(node.input[0])))
        most = build.node("ReduceMax", build.node("Abs", node.input[0]), keepdims=0)
        value = build.node("Add", node.input[0], build.node("Mul", noise, most))
        build.copy(node).input[0] = value

    return spliced(model, build_replacements(model.graph, context.names, perturb, "/noise"))


def _noise(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Draw relative noise of at most `ULPS` units in the last place of a dtype."""
    most = ULPS * float(np.finfo(dtype).eps)
    return random.uniform(-most, most, shape).astype(dtype)
