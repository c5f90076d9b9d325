"""Write one step of LSTM, GRU and RNN as plain operators.

    x ──MatMul W──► sums ◄──MatMul R── h          y = h' = cell(sums, h, c)

Formulas: the ONNX operator specifications of LSTM, GRU and RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .control_flow.build_scan import Value
from .node_builder import NodeBuilder
from .operators.recurrent_activations import DEFAULTS, Activation, read_activations

#: operators with a state, and their gates
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
RECURRENT = frozenset(DEFAULTS)
_REVERSE = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class Layer:
    """Describe a node with time first; there are `activations` and `reverse` for each direction.

    `clip` limits the sums of gates to ±clip. `reset_last` tells whether a GRU resets R·h, and not h. `input_forget` tells
    whether a cell forgets what its input gate leaves.
    """

    op: str
    activations: tuple[tuple[Activation, ...], ...]
    reverse: tuple[bool, ...]
    clip: float
    reset_last: bool
    input_forget: bool
    steps: int
    batch: int
    inputs: int
    hidden: int
    dtype: np.dtype

    @property
    def states(self) -> tuple[str, ...]:
        return ("h", "c") if self.op == "LSTM" else ("h",)


def layer_of(op: str, attributes: Mapping[str, Any], shape: Sequence[int], hidden: int, dtype: np.dtype) -> Layer:
    """Describe a node with x of `shape` (steps, batch, inputs)."""
    reverse = _REVERSE[attributes.get("direction", "forward")]
    steps, batch, inputs = shape
    return Layer(
        op, read_activations(op, attributes, len(reverse)), reverse, float(attributes.get("clip") or 0),
        bool(attributes.get("linear_before_reset", 0)), bool(attributes.get("input_forget", 0)), steps, batch, inputs, hidden, dtype,
    )  # fmt: skip


def parameters(
    build: NodeBuilder, layer: Layer, number: int, w: str, r: str, bias: str, peephole: str
) -> dict[str, Value]:
    """Build the operands of a direction's steps; constants are folded later.

    `w` becomes (inputs, gates · hidden), `r` (hidden, gates · hidden), `bias` the sum of both, (gates · hidden). A GRU has
    the columns of its new state apart if it resets h before the product (`r_new`), and their bias if it resets after it
    (`late`). Peepholes are (hidden) each.
    """
    from onnx import helper

    gates, size = GATES[layer.op], layer.hidden
    operand = partial(Value, element=helper.np_dtype_to_tensor_dtype(layer.dtype))

    def own(name: str) -> str:
        return build.node("Gather", name, build.constant(np.asarray(number)), axis=0)

    def part(name: str, start: int, end: int) -> str:
        return build.node("Slice", name, *(build.integers(each) for each in (start * size, end * size, -1)))

    def weights(name: str) -> str:
        return build.node("Transpose", own(name), perm=[1, 0])

    made = {"w": operand(weights(w), (layer.inputs, gates * size)), "r": operand(weights(r), (size, gates * size))}
    if layer.op == "GRU" and not layer.reset_last:
        whole = made["r"].name
        made |= {"r": operand(part(whole, 0, 2), (size, 2 * size)), "r_new": operand(part(whole, 2, 3), (size, size))}
    if bias:
        of_w, of_r = (part(own(bias), start, start + gates) for start in (0, gates))
        both = build.node("Add", of_w, of_r)
        if layer.op == "GRU" and layer.reset_last:
            both = build.node("Concat", part(both, 0, 2), part(of_w, 2, 3), axis=0)
            made["late"] = operand(part(of_r, 2, 3), (size,))
        made["bias"] = operand(both, (gates * size,))
    if peephole:
        parts = {gate: part(own(peephole), place, place + 1) for place, gate in enumerate("iof")}
        made |= {f"peephole_{gate}": operand(each, (size,)) for gate, each in parts.items()}
    return made


@dataclass(frozen=True)
class Cell:
    """One step of a direction: `operands` are the names of `parameters` where it is built."""

    build: NodeBuilder
    layer: Layer
    activations: tuple[Activation, ...]
    operands: Mapping[str, str]

    def _shares(self, x: str) -> str:
        """Build the shares of x in the sums, with the biases."""
        sums = self.build.node("MatMul", x, self.operands["w"])
        return self.build.node("Add", sums, self.operands["bias"]) if "bias" in self.operands else sums

    def next(self, x: str, states: Mapping[str, str]) -> dict[str, str]:
        """Build the next states of a step, all (1, batch, hidden), from x (batch, inputs).

        The product of h is built first where it takes one kernel with the sum: then nothing else holds back that of x.
        """
        cells: dict[str, Callable[..., dict[str, str]]] = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}
        return cells[self.layer.op](x, **states)

    def _lstm(self, x: str, h: str, c: str) -> dict[str, str]:
        node, (f, g, last) = self.build.node, range(3)
        i, o, forget, new = self._parts(self._sums(x, h), 4)
        taken = self._activate(f, self._add_peephole(i, "i", c))
        kept = self._left(taken) if self.layer.input_forget else self._activate(f, self._add_peephole(forget, "f", c))
        c = node("Add", node("Mul", kept, c), node("Mul", taken, self._activate(g, new)))
        return {"h": node("Mul", self._activate(f, self._add_peephole(o, "o", c)), self._activate(last, c)), "c": c}

    def _gru(self, x: str, h: str) -> dict[str, str]:
        node, (f, g) = self.build.node, range(2)
        of_x = self._parts(self._shares(x), 3)
        of_h = self._parts(self._times(h, "r"), 3 if self.layer.reset_last else 2)
        update, reset = (self._activate(f, node("Add", *pair)) for pair in zip(of_x[:2], of_h))
        if self.layer.reset_last:
            own = node("Add", of_h[2], self.operands["late"]) if "late" in self.operands else of_h[2]
            inner = node("Mul", reset, own)
        else:
            inner = self._times(node("Mul", reset, h), "r_new")
        new = self._activate(g, node("Add", inner, of_x[2]))
        return {"h": node("Add", node("Mul", self._left(update), new), node("Mul", update, h))}

    def _rnn(self, x: str, h: str) -> dict[str, str]:
        return {"h": self._activate(0, self._sums(x, h))}

    def _sums(self, x: str, h: str) -> str:
        product = self._times(h, "r")
        return self.build.node("Add", product, self._shares(x))

    def _times(self, h: str, weights: str) -> str:
        return self.build.node("MatMul", h, self.operands[weights])

    def _parts(self, sums: str, count: int) -> list[str]:
        """Slice the sums of gates: unlike those of a Split, these are not values of their own."""
        size = self.layer.hidden
        return [
            self.build.node("Slice", sums, *map(self.build.integers, (place * size, (place + 1) * size, -1)))
            for place in range(count)
        ]

    def _add_peephole(self, sums: str, gate: str, c: str) -> str:
        """Add the peephole of a gate."""
        peephole = self.operands.get(f"peephole_{gate}")
        return self.build.node("Add", sums, self.build.node("Mul", peephole, c)) if peephole else sums

    def _left(self, taken: str) -> str:
        return self.build.node("Sub", self.build.constant(np.ones((), self.layer.dtype)), taken)

    def _activate(self, place: int, value: str) -> str:
        """Build the activation of this place, behind the limits if it is a gate's: a cell's state is none."""
        if self.layer.clip and place < 2:
            limits = (self.build.number(each, self.layer.dtype) for each in (-self.layer.clip, self.layer.clip))
            value = self.build.node("Clip", value, *limits)
        return self.activations[place].build(self.build, value, self.layer.dtype)
