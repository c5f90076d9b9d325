"""Express DynamicQuantizeLSTM by products of integers and a Scan over the steps.

    x ─► DynamicQuantizeLinear ─► Scan, each step:
         sums = scale · (its row · W) + scale · (quantised h · R) + biases
         i, o, f = sigmoid;   c' = f·c + i·tanh;   h' = o·tanh(c')

As ONNX Runtime: x is quantised once for all steps, h anew in each, both over the whole batch (dynamic_quantize_lstm.cc,
rnn_helpers.cc, one thread). Weights come as directions × inputs × 4·hidden, with one scale or one a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..canonical.control_flow.build_scan import Value, build_scan
from ..canonical.graph_context import NodeView, Rule
from ..canonical.node_builder import NodeBuilder
from ..canonical.node_form import UnsupportedForm
from ..canonical.recurrent_step import Cell, layer_of

_ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh"})
_DEFAULTS = ["Sigmoid", "Tanh", "Tanh"]


class _Weights(NamedTuple):
    """Weights of a direction, inputs × 4·hidden, with scale and zero point: names."""

    numbers: str
    scale: str
    zero: str


def _lstm(node: NodeView, build: NodeBuilder) -> None:
    """Build the layer; nothing for lengths, clipping, other activations, and weights that are not constants."""
    from onnx import TensorProto

    x, w, r, bias, lengths, h, c, peephole, *scales = node.inputs(12)
    activations = node.get("activations") or _DEFAULTS
    given = {name: node.constant(name) for name in (w, r, *scales, bias, peephole) if name}
    for name in ("clip", "input_forget", "activation_alpha", "activation_beta"):
        if node.get(name):
            raise UnsupportedForm(f"its attribute '{name}' is not supported")
    if lengths:
        raise UnsupportedForm("its input 'sequence_lens' is not supported")
    if not set(activations) <= _ACTIVATIONS:
        raise UnsupportedForm(f"its activations {', '.join(activations)} are not all Relu, Sigmoid or Tanh")
    if any(value is None for value in given.values()):
        raise UnsupportedForm("its weights, scales, biases or peepholes are not constant")
    arrays = {name: value for name, value in given.items() if value is not None}
    hidden = arrays[r].shape[1]
    quantised = _quantised(build, x)
    layer = layer_of("LSTM", node.attributes, (0, 0, 0), hidden, np.dtype(np.float32))  # its sizes are not known yet
    cells = [
        _Cell(
            build,
            layer,
            layer.activations[number],
            *_parameters(build, arrays, number, (w, r), scales, bias, peephole),
            quantised,
        )
        for number in range(len(layer.reverse))
    ]
    states = {
        f"{state}_{number}": Value(_start(build, given_state, number, x, hidden), None, TensorProto.FLOAT)
        for number in range(len(layer.reverse))
        for state, given_state in (("h", h), ("c", c))
    }
    rows = {
        f"x_{number}": Value(quantised[0], None, TensorProto.UINT8, backwards)
        for number, backwards in enumerate(layer.reverse)
    }

    def step(body: NodeBuilder, values: dict[str, str]) -> tuple[dict[str, str], list[Value]]:
        after: dict[str, str] = {}
        made = []
        for number, cell in enumerate(cells):
            inside = replace(cell, build=body)
            following = inside.next(
                values[f"x_{number}"], {state: values[f"{state}_{number}"] for state in layer.states}
            )
            after |= {f"{state}_{number}": value for state, value in following.items()}
            made.append(Value(body.node("Identity", following["h"]), None, TensorProto.FLOAT, layer.reverse[number]))
        return after, made

    ends, y = build_scan(build, states, {}, rows, step)
    last = [[ends[f"{state}_{number}"] for number in range(len(cells))] for state in layer.states]
    for result, parts, axis in zip(node.output, (y, *last), (1, 0, 0)):
        if result:
            build.node("Concat", *parts, result=result, axis=axis)


def _parameters(
    build: NodeBuilder,
    arrays: Mapping[str, np.ndarray],
    number: int,
    weights: Sequence[str],
    scales: Sequence[str],
    bias: str,
    peephole: str,
) -> tuple[dict[str, str], dict[str, _Weights]]:
    """Return the operands of a direction's cell by name, and the weights of its products."""
    products = {
        each: _Weights(
            *(build.constant(np.asarray(arrays[name][number])) for name in (source, *scales[first : first + 2]))
        )
        for each, source, first in zip(("w", "r"), weights, (0, 2))
    }
    held = (
        dict(zip(("peephole_i", "peephole_o", "peephole_f"), np.split(arrays[peephole][number], 3))) if peephole else {}
    )
    if bias:
        held["bias"] = np.add(*np.split(arrays[bias][number], 2))
    return {name: build.constant(each) for name, each in held.items()}, products


@dataclass(frozen=True)
class _Cell(Cell):
    """Compute one step of a direction by products of integers; `x` is the sequence, quantised once."""

    products: Mapping[str, _Weights]
    x: list[str]

    def _shares(self, x: str) -> str:
        """Build the shares of a row of the quantised sequence in the sums, with the biases."""
        sums = _product(self.build, [x, *self.x[1:]], self.products["w"])
        return self.build.node("Add", sums, self.operands["bias"]) if "bias" in self.operands else sums

    def _times(self, h: str, weights: str) -> str:
        return _product(self.build, _quantised(self.build, h), self.products[weights])


def _quantised(build: NodeBuilder, value: str) -> list[str]:
    """Return numbers, scale and zero point of a float tensor."""
    return build.many("DynamicQuantizeLinear", [value], 3)


def _product(build: NodeBuilder, quantised: list[str], weights: _Weights) -> str:
    """Build float(sums) · (scale · scale)."""
    numbers, scale, zero = quantised
    sums = build.node("MatMulInteger", numbers, weights.numbers, zero, weights.zero)
    return build.node("Mul", build.cast(sums, np.float32), build.node("Mul", scale, weights.scale))


def _start(build: NodeBuilder, state: str, number: int, x: str, hidden: int) -> str:
    """Return the state (1, batch, hidden) of a direction before the first step: given, else zeros."""
    if state:
        return build.node("Slice", state, *(build.integers(each) for each in (number, number + 1, 0)))
    batch = build.node("Slice", build.node("Shape", x), *(build.integers(each) for each in (1, 2, 0)))
    shape = build.node("Concat", build.integers(1), batch, build.integers(hidden), axis=0)
    return build.node("Expand", build.constant(np.zeros((1, 1, hidden), np.float32)), shape)


RULES: dict[str, Rule] = {"DynamicQuantizeLSTM": _lstm}
