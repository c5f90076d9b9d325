"""Unroll LSTM, GRU and RNN with a static number of steps into plain operators.

    X ──MatMul W──► one row per step ─┐
    h, c ─────────────────────────► cell ──► h, c ──► cell ──► …        Y = all h

The part of the gates that depends on the input alone is one MatMul for all steps. Formulas: the ONNX operator
specifications of LSTM, GRU and RNN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelError
from .node_builder import NodeBuilder, attributes_of, splice, stem_of
from .read_onnx import node_title
from .shapes import static_shape, value_types

if TYPE_CHECKING:
    import onnx

#: one step: the input's share of the gates (batch, gates), h and c (batch, hidden) to the next h and c
Cell = Callable[[str, str, str], tuple[str, str]]

#: each step becomes about ten nodes, and the compiler's time grows with them
MOST_STEPS = 256
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_ACTIVATIONS = frozenset({"Sigmoid", "Tanh", "Relu"})


@dataclass(frozen=True)
class _Direction:
    """Parameters of one direction of a node.

    `w` is (gates, inputs), `r` (gates, hidden), both biases (gates).
    """

    op: str
    w: np.ndarray
    r: np.ndarray
    w_bias: np.ndarray
    r_bias: np.ndarray
    activations: list[str]
    linear_before_reset: bool


def unroll_recurrent(model: onnx.ModelProto) -> onnx.ModelProto:
    """Unroll the LSTM, GRU and RNN nodes of `model` (with inferred shapes).

    Raises ModelError for forms not covered.
    """
    nodes = {index: node for index, node in enumerate(model.graph.node) if node.op_type in _GATES}
    if not nodes:
        return model
    from onnx import numpy_helper

    read = {name for node in nodes.values() for name in node.input[1:]}
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in read}
    types = value_types(model.graph)
    made = {index: _unroll(node, index, constants, types) for index, node in nodes.items()}
    result = type(model)()
    result.CopyFrom(model)
    splice(result.graph, made)
    return result


def _unroll(
    node: onnx.NodeProto, index: int, constants: dict[str, np.ndarray], types: dict[str, onnx.TypeProto]
) -> NodeBuilder:
    attributes = attributes_of(node)
    inputs = [*node.input, *[""] * (8 - len(node.input))]
    shape = static_shape(types[inputs[0]]) if inputs[0] in types else None
    if shape is None:
        _refuse(node, "its number of steps is not static", "Give the inputs static shapes (--shape).")
    batch_first = bool(attributes.get("layout", 0))
    steps, batch = (shape[1], shape[0]) if batch_first else (shape[0], shape[1])
    directions = _directions(node, attributes, inputs, constants, steps, batch)
    hidden = directions[0].r.shape[1]
    build = NodeBuilder(stem_of(node, index))
    x = build.node("Transpose", inputs[0], perm=[1, 0, 2]) if batch_first else inputs[0]
    starts = []
    for name in (inputs[5], inputs[6] if node.op_type == "LSTM" else ""):
        if name and batch_first:
            name = build.node("Transpose", name, perm=[1, 0, 2])
        starts.append(_per_direction(build, name, len(directions), (batch, hidden), directions[0].w.dtype))
    reverse = [attributes.get("direction") == "reverse" or number == 1 for number in range(len(directions))]
    runs = [
        _run(build, direction, x, steps, starts[0][number], starts[1][number], backwards)
        for number, (direction, backwards) in enumerate(zip(directions, reverse))
    ]
    _emit_results(build, node, runs, batch_first)
    return build


def _directions(
    node: onnx.NodeProto,
    attributes: dict[str, Any],
    inputs: list[str],
    constants: dict[str, np.ndarray],
    steps: int,
    batch: int,
) -> list[_Direction]:
    op = node.op_type
    if steps > MOST_STEPS:
        _refuse(node, f"it runs {steps} steps, more than {MOST_STEPS}", "Give the inputs a shorter shape (--shape).")
    for name, neutral in (("clip", 0.0), ("input_forget", 0)):
        if attributes.get(name, neutral) != neutral:
            _refuse(node, f"its attribute '{name}' is not supported", "Export the model without it.")
    if any(name not in constants for name in inputs[1:4] if name) or not inputs[1] or not inputs[2]:
        _refuse(node, "its weights are not constants", "Export the model with constant weights.")
    if op == "LSTM" and inputs[7] and (inputs[7] not in constants or constants[inputs[7]].any()):
        _refuse(node, "it has peepholes", "Export the model without them.")
    lengths = constants.get(inputs[4]) if inputs[4] else np.full(batch, steps)
    if lengths is None or (lengths != steps).any():
        _refuse(node, "its sequences differ in length", "Export the model without sequence lengths.")
    w, r = constants[inputs[1]], constants[inputs[2]]
    gates = w.shape[1]
    bias = constants[inputs[3]] if inputs[3] else np.zeros((len(w), 2 * gates), w.dtype)
    activations = list(attributes.get("activations", _DEFAULTS[op] * len(w)))
    if not set(activations) <= _ACTIVATIONS or attributes.get("activation_alpha") or attributes.get("activation_beta"):
        _refuse(node, f"its activations {', '.join(activations)} are not supported", "Use Sigmoid, Tanh or Relu.")
    each = len(activations) // len(w)
    return [
        _Direction(
            op, w[d], r[d], bias[d, :gates], bias[d, gates:], activations[d * each : (d + 1) * each],
            bool(attributes.get("linear_before_reset", 0)),
        )
        for d in range(len(w))
    ]  # fmt: skip


def _refuse(node: onnx.NodeProto, why: str, hint: str) -> None:
    raise ModelError(f"The {node_title(node)} cannot be unrolled: {why}.", hint)


def _per_direction(build: NodeBuilder, name: str, count: int, shape: tuple[int, int], dtype: np.dtype) -> list[str]:
    """Return the starting state (batch, hidden) of each direction: from the input, else zeros."""
    if not name:
        return [build.constant(np.zeros(shape, dtype))] * count
    parts = build.many("Split", [name, build.integers(*[1] * count)], count, axis=0) if count > 1 else [name]
    return [build.node("Reshape", part, build.integers(*shape)) for part in parts]


def _run(
    build: NodeBuilder, direction: _Direction, x: str, steps: int, h: str, c: str, backwards: bool
) -> tuple[list[str], str, str]:
    """Run all steps of one direction; return h (batch, hidden) after each in time order, last h, last c."""
    gates = direction.w.shape[0]
    # The biases that are only added can be added once; GRU's last one may be multiplied by the reset gate first.
    once = direction.w_bias + direction.r_bias
    late = direction.r_bias[-gates // 3 :] if direction.op == "GRU" else None
    if late is not None:
        once = np.concatenate([once[: -len(late)], direction.w_bias[-len(late) :]])
    rows = build.node("Add", build.node("MatMul", x, build.constant(direction.w.T)), build.constant(once))
    row = [rows] if steps == 1 else build.many("Split", [rows, build.integers(*[1] * steps)], steps, axis=0)
    cell = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}[direction.op](build, direction, late)
    axis = build.integers(0)
    seen: list[str] = [""] * steps
    for step in reversed(range(steps)) if backwards else range(steps):
        h, c = cell(build.node("Squeeze", row[step], axis), h, c)
        seen[step] = h
    return seen, h, c


def _lstm(build: NodeBuilder, direction: _Direction, late: np.ndarray | None) -> Cell:
    r = build.constant(direction.r.T)
    sizes = build.integers(*[direction.r.shape[1]] * 4)
    f, g, h_ = direction.activations

    def cell(row: str, h: str, c: str) -> tuple[str, str]:
        i, o, forget, new = build.many("Split", [build.node("Add", row, build.node("MatMul", h, r)), sizes], 4, axis=1)
        kept = build.node("Mul", build.node(f, forget), c)
        c = build.node("Add", kept, build.node("Mul", build.node(f, i), build.node(g, new)))
        return build.node("Mul", build.node(f, o), build.node(h_, c)), c

    return cell


def _gru(build: NodeBuilder, direction: _Direction, late: np.ndarray) -> Cell:
    hidden = direction.r.shape[1]
    r_zr, r_h = build.constant(direction.r[: 2 * hidden].T), build.constant(direction.r[2 * hidden :].T)
    late_bias = build.constant(late)
    sizes, two = build.integers(2 * hidden, hidden), build.integers(hidden, hidden)
    one = build.constant(np.ones((), direction.w.dtype))
    f, g = direction.activations

    def cell(row: str, h: str, c: str) -> tuple[str, str]:
        row_zr, row_h = build.many("Split", [row, sizes], 2, axis=1)
        both = build.node(f, build.node("Add", row_zr, build.node("MatMul", h, r_zr)))
        z, reset = build.many("Split", [both, two], 2, axis=1)
        if direction.linear_before_reset:
            inner = build.node("Mul", reset, build.node("Add", build.node("MatMul", h, r_h), late_bias))
        else:
            inner = build.node("Add", build.node("MatMul", build.node("Mul", reset, h), r_h), late_bias)
        new = build.node(g, build.node("Add", row_h, inner))
        return build.node("Add", build.node("Mul", build.node("Sub", one, z), new), build.node("Mul", z, h)), c

    return cell


def _rnn(build: NodeBuilder, direction: _Direction, late: np.ndarray | None) -> Cell:
    r = build.constant(direction.r.T)

    def cell(row: str, h: str, c: str) -> tuple[str, str]:
        return build.node(direction.activations[0], build.node("Add", row, build.node("MatMul", h, r))), c

    return cell


def _emit_results(build: NodeBuilder, node: onnx.NodeProto, runs: list[tuple[list[str], str, str]], batch_first: bool) -> None:
    """Emit Y, Y_h and Y_c; batch first if asked for.

    Y is (steps, directions, batch, hidden), Y_h and Y_c are (directions, batch, hidden).
    """
    names = [*node.output, "", ""]
    if names[0]:
        both = build.integers(0, 1)
        lines = [_join(build, [build.node("Unsqueeze", h, both) for h in seen], 0) for seen, _, _ in runs]
        _finish(build, _join(build, lines, 1), names[0], [2, 0, 1, 3] if batch_first else [])
    for name, position in ((names[1], 1), (names[2], 2)):
        if name:
            axis = build.integers(0)
            ends = _join(build, [build.node("Unsqueeze", run[position], axis) for run in runs], 0)
            _finish(build, ends, name, [1, 0, 2] if batch_first else [])


def _join(build: NodeBuilder, parts: list[str], axis: int) -> str:
    return build.many("Concat", parts, 1, axis=axis)[0] if len(parts) > 1 else parts[0]


def _finish(build: NodeBuilder, value: str, name: str, perm: list[int]) -> None:
    if perm:
        build.node("Transpose", value, result=name, perm=perm)
    else:
        build.node("Identity", value, result=name)
