"""Express DynamicQuantizeLSTM by products of integers and a Scan over the steps.

    x ─► DynamicQuantizeLinear ─► MatMulInteger W ─► · scale ─► Scan, each step:
         sums = its row + scale · (quantised h · R) + biases;   i, o, f = sigmoid;   c' = f·c + i·tanh;   h' = o·tanh(c')

As ONNX Runtime: x is quantised once for all steps, h anew in each, both over the whole batch (dynamic_quantize_lstm.cc,
rnn_helpers.cc, one thread). Weights come as directions × inputs × 4·hidden, with one scale or one a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..canonical.node_builder import NodeBuilder
from .context import Rule, Surroundings, inputs_of

if TYPE_CHECKING:
    import onnx

_DIRECTIONS = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
_ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh"})
_DEFAULTS = ["Sigmoid", "Tanh", "Tanh"]
#: order of the gates in sums, biases and peepholes
_INPUT, _OUTPUT, _FORGET, _CELL = range(4)


class _Weights(NamedTuple):
    """Weights of a direction, inputs × 4·hidden, with scale and zero point: names."""

    numbers: str
    scale: str
    zero: str


def _lstm(node: onnx.NodeProto, attributes: dict[str, Any], around: Surroundings, build: NodeBuilder) -> str | None:
    """Build the layer; nothing for lengths, clipping, other activations, and weights that are no constants."""
    x, w, r, bias, lengths, h, c, peephole, *scales = inputs_of(node, 12)
    reverse = _DIRECTIONS.get(attributes.get("direction", "forward"), ())
    activations = attributes.get("activations") or _DEFAULTS * len(reverse)
    given = {name: around.constant(name) for name in (w, r, *scales, bias, peephole) if name}
    for name in ("clip", "input_forget", "activation_alpha", "activation_beta"):
        if attributes.get(name):
            return f"its attribute '{name}' is not supported"
    if lengths:
        return "its input 'sequence_lens' is not supported"
    if not set(activations) <= _ACTIVATIONS:
        return f"its activations {', '.join(activations)} are not all Relu, Sigmoid or Tanh"
    if any(value is None for value in given.values()):
        return "its weights, scales, biases or peepholes are not constant"
    arrays = {name: value for name, value in given.items() if value is not None}
    quantised = _quantised(build, x)
    ends = []
    for number, backwards in enumerate(reverse):
        own = [
            _Weights(*(build.constant(np.asarray(arrays[name][number])) for name in (each, *scales[first : first + 2])))
            for each, first in ((w, 0), (r, 2))
        ]
        rows = _product(build, quantised, own[0])
        shift = np.split(arrays[bias][number], 2) if bias else None
        more = build.constant(shift[0] + shift[1]) if shift else ""
        held = np.split(arrays[peephole][number], 3) if peephole else ()
        cell = _Cell(own[1], more, [build.constant(each) for each in held], activations[3 * number : 3 * number + 3])
        hidden = arrays[r].shape[1]
        starts = [_start(build, state, number, x, hidden) for state in (h, c)]
        ends.append(_scan(build, rows, starts, cell, hidden, backwards))
    for place, result in enumerate(node.output):
        if result:
            build.node("Concat", *(end[place] for end in ends), result=result, axis=1 if place == 0 else 0)
    return None


class _Cell(NamedTuple):
    """Parameters of a step: names of weights, bias and peepholes (input, output, forget), and its activations."""

    r: _Weights
    bias: str
    peepholes: list[str]
    activations: list[str]

    def step(self, build: NodeBuilder, row: str, h: str, c: str, hidden: int) -> tuple[str, str]:
        """Build the next h and c (batch, hidden) from a row of x's products (batch, 4·hidden)."""
        f, g, last = self.activations
        sums = build.node("Add", row, _product(build, _quantised(build, h), self.r))
        if self.bias:
            sums = build.node("Add", sums, self.bias)
        gates = [
            build.node("Slice", sums, *(build.integers(each) for each in (gate * hidden, (gate + 1) * hidden, 1)))
            for gate in range(4)
        ]

        def held(gate: int, place: int, state: str) -> str:
            if not self.peepholes:
                return gates[gate]
            return build.node("Add", gates[gate], build.node("Mul", self.peepholes[place], state))

        kept = build.node("Mul", build.node(f, held(_FORGET, 2, c)), c)
        new = build.node("Mul", build.node(f, held(_INPUT, 0, c)), build.node(g, gates[_CELL]))
        after = build.node("Add", kept, new)
        return build.node("Mul", build.node(f, held(_OUTPUT, 1, after)), build.node(last, after)), after


def _quantised(build: NodeBuilder, value: str) -> list[str]:
    """Return numbers, scale and zero point of a float tensor."""
    return build.many("DynamicQuantizeLinear", [value], 3)


def _product(build: NodeBuilder, quantised: list[str], weights: _Weights) -> str:
    """Build float(sums) · (scale · scale)."""
    from onnx import TensorProto

    numbers, scale, zero = quantised
    sums = build.node("MatMulInteger", numbers, weights.numbers, zero, weights.zero)
    return build.node("Mul", build.node("Cast", sums, to=TensorProto.FLOAT), build.node("Mul", scale, weights.scale))


def _start(build: NodeBuilder, state: str, number: int, x: str, hidden: int) -> str:
    """Return the state (batch, hidden) of a direction before the first step: given, else zeros."""
    if state:
        picked = build.node("Slice", state, *(build.integers(each) for each in (number, number + 1, 0)))
        return build.node("Reshape", picked, build.integers(-1, hidden))
    batch = build.node("Slice", build.node("Shape", x), *(build.integers(each) for each in (1, 2, 0)))
    return build.node("Expand", build.constant(np.zeros((1, hidden), np.float32)), build.node("Concat", batch, build.integers(hidden), axis=0))


def _scan(build: NodeBuilder, rows: str, starts: list[str], cell: _Cell, hidden: int, backwards: int) -> tuple[str, str, str]:
    """Build the steps over `rows` (steps, batch, 4·hidden); return Y, Y_h and Y_c of a direction."""
    from onnx import TensorProto, helper

    stem = f"{build.stem}/{'backwards' if backwards else 'forwards'}"
    body = NodeBuilder(stem)
    ports = [f"{stem}/{name}" for name in ("h", "c", "row")]
    h, c = cell.step(body, ports[2], ports[0], ports[1], hidden)
    y = body.node("Identity", h)
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names] for names in (ports, (h, c, y)))
    graph = helper.make_graph(body.nodes, stem, inputs, outputs, body.initializers)
    options = {"scan_input_directions": [backwards], "scan_output_directions": [backwards]}
    last_h, last_c, every = build.many("Scan", [*starts, rows], 3, body=graph, num_scan_inputs=1, **options)
    y = build.node("Reshape", every, build.integers(0, 1, -1, hidden))
    y_h, y_c = (build.node("Reshape", each, build.integers(1, -1, hidden)) for each in (last_h, last_c))
    return y, y_h, y_c


RULES: dict[str, Rule] = {"DynamicQuantizeLSTM": _lstm}
