"""Rewrite an LSTM, GRU or RNN of one step into plain operators.

    x ──MatMul W──► gates ─► cell ──► h, c          Y = h

Formulas: the ONNX operator specifications of LSTM, GRU and RNN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .node_builder import NodeBuilder
from .operators.recurrent_activations import DEFAULTS, Activation, read_activations

#: one step: the input's share of the gates (batch, gates), h and c (batch, hidden) to the next h and c
Cell = Callable[[str, str, str], tuple[str, str]]

#: operators with a state
RECURRENT = frozenset(DEFAULTS)


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
    activations: tuple[Activation, ...]
    linear_before_reset: bool
    input_forget: bool


def is_one_step(
    attributes: dict[str, Any], inputs: list[str], constants: dict[str, np.ndarray], shape: tuple[int, ...]
) -> bool:
    """Tell whether a node with constant weights runs one step, without lengths, peepholes and clipping."""
    lengths = constants.get(inputs[4]) if inputs[4] else np.ones(shape[1])
    return (
        shape[0] == 1
        and all(name in constants for name in inputs[1:4] if name)
        and not inputs[7]
        and not attributes.get("clip", 0)
        and lengths is not None
        and bool((lengths == 1).all())
    )


def one_step(
    build: NodeBuilder,
    op: str,
    attributes: dict[str, Any],
    inputs: list[str],
    constants: dict[str, np.ndarray],
    shape: tuple[int, ...],
) -> list[str]:
    """Build the operators of a node with x of `shape` (1, batch, inputs); return Y, Y_h and Y_c.

    Y is (1, directions, batch, hidden), Y_h and Y_c are (directions, batch, hidden); there is Y_c of an LSTM only.
    """
    batch = shape[1]
    directions = _directions(op, attributes, inputs, constants)
    hidden = directions[0].r.shape[1]
    starts = [
        _per_direction(build, name, len(directions), (batch, hidden), directions[0].w.dtype)
        for name in (inputs[5], inputs[6] if op == "LSTM" else "")
    ]
    ends = [_run(build, direction, inputs[0], h, c) for direction, h, c in zip(directions, *starts)]
    axis = build.integers(0)
    last = [
        _join(build, [build.node("Unsqueeze", end[place], axis) for end in ends])
        for place in range(2 if op == "LSTM" else 1)
    ]
    return [build.node("Unsqueeze", last[0], axis), *last]


def _directions(
    op: str, attributes: dict[str, Any], inputs: list[str], constants: dict[str, np.ndarray]
) -> list[_Direction]:
    w, r = constants[inputs[1]], constants[inputs[2]]
    gates = w.shape[1]
    bias = constants[inputs[3]] if inputs[3] else np.zeros((len(w), 2 * gates), w.dtype)
    activations = read_activations(op, attributes, len(w))
    return [
        _Direction(
            op, w[d], r[d], bias[d, :gates], bias[d, gates:], activations[d],
            bool(attributes.get("linear_before_reset", 0)), bool(attributes.get("input_forget", 0)),
        )
        for d in range(len(w))
    ]  # fmt: skip


def _per_direction(build: NodeBuilder, name: str, count: int, shape: tuple[int, int], dtype: np.dtype) -> list[str]:
    """Return the starting state (batch, hidden) of each direction: from the input, else zeros."""
    if not name:
        return [build.constant(np.zeros(shape, dtype))] * count
    parts = build.many("Split", [name, build.integers(*[1] * count)], count, axis=0) if count > 1 else [name]
    return [build.node("Reshape", part, build.integers(*shape)) for part in parts]


def _run(build: NodeBuilder, direction: _Direction, x: str, h: str, c: str) -> tuple[str, str]:
    """Run the step of one direction; return h and c, both (batch, hidden)."""
    gates = direction.w.shape[0]
    # The biases that are only added can be added once; GRU's last one may be multiplied by the reset gate first.
    once = direction.w_bias + direction.r_bias
    late = direction.r_bias[-gates // 3 :] if direction.op == "GRU" else None
    if late is not None:
        once = np.concatenate([once[: -len(late)], direction.w_bias[-len(late) :]])
    rows = build.node("Add", build.node("MatMul", x, build.constant(direction.w.T)), build.constant(once))
    cell = {"LSTM": _lstm, "GRU": _gru, "RNN": _rnn}[direction.op](build, direction, late)
    return cell(build.node("Squeeze", rows, build.integers(0)), h, c)


def _lstm(build: NodeBuilder, direction: _Direction, late: np.ndarray | None) -> Cell:
    r = build.constant(direction.r.T)
    sizes = build.integers(*[direction.r.shape[1]] * 4)
    kind, one = direction.w.dtype, build.constant(np.ones((), direction.w.dtype))
    f, g, h_ = direction.activations

    def cell(row: str, h: str, c: str) -> tuple[str, str]:
        i, o, forget, new = build.many("Split", [build.node("Add", row, build.node("MatMul", h, r)), sizes], 4, axis=1)
        taken = f.build(build, i, kind)
        kept = build.node("Sub", one, taken) if direction.input_forget else f.build(build, forget, kind)
        c = build.node("Add", build.node("Mul", kept, c), build.node("Mul", taken, g.build(build, new, kind)))
        return build.node("Mul", f.build(build, o, kind), h_.build(build, c, kind)), c

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
        both = f.build(build, build.node("Add", row_zr, build.node("MatMul", h, r_zr)), direction.w.dtype)
        z, reset = build.many("Split", [both, two], 2, axis=1)
        if direction.linear_before_reset:
            inner = build.node("Mul", reset, build.node("Add", build.node("MatMul", h, r_h), late_bias))
        else:
            inner = build.node("Add", build.node("MatMul", build.node("Mul", reset, h), r_h), late_bias)
        new = g.build(build, build.node("Add", row_h, inner), direction.w.dtype)
        return build.node("Add", build.node("Mul", build.node("Sub", one, z), new), build.node("Mul", z, h)), c

    return cell


def _rnn(build: NodeBuilder, direction: _Direction, late: np.ndarray | None) -> Cell:
    r = build.constant(direction.r.T)

    def cell(row: str, h: str, c: str) -> tuple[str, str]:
        return direction.activations[0].build(build, build.node("Add", row, build.node("MatMul", h, r)), direction.w.dtype), c

    return cell


def _join(build: NodeBuilder, parts: list[str]) -> str:
    return build.many("Concat", parts, 1, axis=0)[0] if len(parts) > 1 else parts[0]
