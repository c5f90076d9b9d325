"""Build LSTM, GRU and RNN as one kernel a node: a loop over the steps, states in its results.

    for each direction, sequence:
        h, c = initial states
        for each step:
            gates  = biases + W·x[step] + R·h        rows of weights, added up several at a time
            h, c   = cell(gates, h, c)
            y[step] = h

Weights are read as (inputs, gates), so that the innermost loop runs along memory. Formulas: the ONNX operator
specifications of LSTM, GRU and RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tvm import te, tirx
from tvm.ir import Expr, Var
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt

#: annotation of loops along memory whose iterations are independent: kernels/rules/vector_loops.py
ALONG_MEMORY = "passfit.along_memory"
#: rows of weights added to the gates at a time: each saves a load and a store of the gates
_ROWS = 4

#: factor of a row of weights, by its number
_Factor = Callable[[Expr], Expr]
#: weight of a row and a gate
_Weights = Callable[[Expr, Expr], Expr]


@dataclass(frozen=True)
class Cell:
    """Describe the cells of a node: `op` is LSTM, GRU or RNN; activations are given for each direction.

    `reverse` tells for each direction whether it runs backwards. `clip` limits the sums of gates to ±clip.
    `sequence` tells whether all states are a result, or only the last ones.
    """

    op: str
    activations: tuple[tuple[str, ...], ...]
    reverse: tuple[bool, ...]
    clip: float | None = None
    linear_before_reset: bool = False
    sequence: bool = True

    @property
    def gates(self) -> int:
        return {"LSTM": 4, "GRU": 3, "RNN": 1}[self.op]


@dataclass(frozen=True)
class Operands:
    """Place each operand of a kernel: its number among the operands, None if the node lacks it.

    `x` (steps, batch, inputs), `w` (directions, inputs, gates), `r` (directions, hidden, gates), `bias` (directions,
    twice the gates), `lengths` (batch), `h` and `c` (directions, batch, hidden), `peephole` (directions, 3 × hidden).
    """

    x: int = 0
    w: int = 1
    r: int = 2
    bias: int | None = None
    lengths: int | None = None
    h: int | None = None
    c: int | None = None
    peephole: int | None = None


def recurrent(*operands: te.Tensor, cell: Cell, places: Operands) -> list[te.Tensor]:
    """Return Y_h and, of an LSTM, Y_c (directions, batch, hidden), then Y (steps, directions, batch, hidden) if any."""
    x, r = operands[places.x], operands[places.r]
    (steps, batch, _), (directions, hidden, _) = _extents(x), _extents(r)
    state = [directions, batch, hidden]
    named = {"y_h": state}
    if cell.op == "LSTM":
        named["y_c"] = state
    if cell.sequence:
        named["y"] = [steps, *state]
    shapes = list(named.values())
    results = [tirx.decl_buffer(shape, x.dtype, name) for name, shape in named.items()]

    def generate(ins: Sequence[Var], outs: Sequence[Var]) -> Stmt:
        return _Layer(cell, places, ins, outs).statement()

    return te.extern(shapes, list(operands), generate, out_buffers=results, name=cell.op.lower(), tag="recurrent")


def _extents(tensor: te.Tensor) -> list[int]:
    return [int(extent) for extent in tensor.shape]


class _Array:
    """Read and write a buffer by subscripts, inside a builder."""

    def __init__(self, buffer: Var):
        self.buffer = buffer

    def __getitem__(self, indices: object) -> Expr:
        return tirx.BufferLoad(self.buffer, _subscripts(indices))

    def __setitem__(self, indices: object, value: Expr) -> None:
        T.buffer_store(self.buffer, value, _subscripts(indices))


def _subscripts(indices: object) -> list[Expr]:
    each = indices if isinstance(indices, tuple) else (indices,)
    return [tirx.const(index, "int64") if isinstance(index, int) else index for index in each]


class _Layer:
    """Write the statements of a kernel; `ins` and `outs` are buffers in the order of `recurrent`."""

    def __init__(self, cell: Cell, places: Operands, ins: Sequence[Var], outs: Sequence[Var]):
        self.cell, self.places = cell, places
        self.ins, self.outs = ins, outs
        self.directions, self.batch, self.hidden = (int(extent) for extent in outs[0].shape)
        self.steps, _, self.inputs = (int(extent) for extent in ins[places.x].shape)
        self.dtype = str(outs[0].dtype)

    def statement(self) -> Stmt:
        self.given = [_Array(each) for each in self.ins]
        self.y_h, *rest = map(_Array, self.outs)
        self.y = rest.pop() if self.cell.sequence else None
        self.y_c = rest.pop() if rest else None
        extra = self.hidden if self.cell.op == "GRU" else 0  # the share of h in the new state, kept apart
        size = tirx.const(self.cell.gates * self.hidden + extra, "int64")
        sums = tirx.decl_buffer([size], self.dtype, "sums")
        self.sums = _Array(sums)
        return tirx.SeqStmt([tirx.AllocBuffer(sums), *map(self._direction, range(self.directions))])

    def _direction(self, direction: int) -> Stmt:
        with IRBuilder() as builder:
            with self._loop(self.batch) as sequence:
                self._sequence(direction, sequence)
            return builder.get()

    def _sequence(self, direction: int, sequence: Expr) -> None:
        for state, place in ((self.y_h, self.places.h), (self.y_c, self.places.c)):
            if state is not None:
                with self._each() as j:
                    state[direction, sequence, j] = self._operand(place, direction, sequence, j)
        lengths = self.places.lengths
        if lengths is None:
            self._steps(direction, sequence, None)
            return
        length = tirx.Cast("int64", self.given[lengths][sequence])
        self._steps(direction, sequence, length)
        if self.y is None:
            return
        with self._loop(self.steps) as step, T.If(step >= length), T.Then(), self._each() as j:
            self.y[step, direction, sequence, j] = self._zero()

    def _steps(self, direction: int, sequence: Expr, length: Expr | None) -> None:
        last = self.steps - 1 if length is None else length - 1
        with self._loop(self.steps) as count:
            step = last - count if self.cell.reverse[direction] else count
            if length is None:
                self._step(direction, sequence, step)
                return
            with T.If(count < length), T.Then():
                self._step(direction, sequence, step)

    def _step(self, direction: int, sequence: Expr, step: Expr) -> None:
        gates = self.cell.gates * self.hidden
        self._start(direction, gates)
        x, w, r = self.given[self.places.x], self.given[self.places.w], self.given[self.places.r]
        self._add_rows(self.inputs, gates, lambda k: x[step, sequence, k], lambda k, j: w[direction, k, j])

        def before(k: Expr) -> Expr:
            return self.y_h[direction, sequence, k]

        {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self.cell.op](
            direction, sequence, before, lambda k, j: r[direction, k, j]
        )
        if self.y is not None:
            with self._each() as j:
                self.y[step, direction, sequence, j] = self.y_h[direction, sequence, j]

    def _lstm(self, direction: int, sequence: Expr, before: _Factor, weights: _Weights) -> None:
        size = self.hidden
        self._add_rows(size, 4 * size, before, weights)
        f, g, h = (self._activation(direction, number) for number in range(3))
        with self._each() as j:
            c = self.y_c[direction, sequence, j]
            i, forget, new = (self.sums[place * size + j] for place in (0, 2, 3))
            kept = f(forget + self._peephole(direction, 2, j, c)) * c
            self.y_c[direction, sequence, j] = kept + f(i + self._peephole(direction, 0, j, c)) * g(new)
        with self._each() as j:
            c = self.y_c[direction, sequence, j]
            self.y_h[direction, sequence, j] = f(self.sums[size + j] + self._peephole(direction, 1, j, c)) * h(c)

    def _gru(self, direction: int, sequence: Expr, before: _Factor, weights: _Weights) -> None:
        size = self.hidden
        f, g = (self._activation(direction, number) for number in range(2))
        self._add_rows(size, 2 * size, before, weights)
        share = 3 * size  # of h in the new state
        if self.cell.linear_before_reset:
            with self._each() as j:
                self.sums[share + j] = self._bias(direction, 5 * size + j)
            self._add_rows(size, size, before, lambda k, j: weights(k, 2 * size + j), share)
            with self._each() as j:
                reset = f(self.sums[size + j])
                self.sums[2 * size + j] = self.sums[2 * size + j] + reset * self.sums[share + j]
        else:
            with self._each() as j:
                self.sums[share + j] = f(self.sums[size + j]) * before(j)
            self._add_rows(size, size, lambda k: self.sums[share + k], lambda k, j: weights(k, 2 * size + j), 2 * size)
        with self._each() as j:
            update = f(self.sums[j])
            new = g(self.sums[2 * size + j])
            self.y_h[direction, sequence, j] = new + update * (before(j) - new)

    def _rnn(self, direction: int, sequence: Expr, before: _Factor, weights: _Weights) -> None:
        self._add_rows(self.hidden, self.hidden, before, weights)
        f = self._activation(direction, 0)
        with self._each() as j:
            self.y_h[direction, sequence, j] = f(self.sums[j])

    def _add_rows(self, count: int, width: int, factor: _Factor, weights: _Weights, start: int = 0) -> None:
        """Add `count` rows of weights, each times its factor, to the sums from `start` on."""
        whole = count // _ROWS
        if whole:
            with self._loop(whole) as block:
                self._add(width, [block * _ROWS + row for row in range(_ROWS)], factor, weights, start)
        if count % _ROWS:
            self._add(width, [tirx.const(k, "int64") for k in range(whole * _ROWS, count)], factor, weights, start)

    def _add(self, width: int, rows: Sequence[Expr], factor: _Factor, weights: _Weights, start: int) -> None:
        with self._each(width) as j:
            added = self.sums[start + j]
            for k in rows:
                added = added + factor(k) * weights(k, j)
            self.sums[start + j] = added

    def _start(self, direction: int, gates: int) -> None:
        """Start the sums with both biases; a GRU may reset the second one of its new state with h."""
        late = self.hidden if self.cell.op == "GRU" and self.cell.linear_before_reset else 0
        with self._each(gates - late) as j:
            self.sums[j] = self._bias(direction, j) + self._bias(direction, gates + j)
        if late:
            with self._each(late) as j:
                self.sums[gates - late + j] = self._bias(direction, gates - late + j)

    def _bias(self, direction: int, j: Expr) -> Expr:
        return self._operand(self.places.bias, direction, j)

    def _peephole(self, direction: int, place: int, j: Expr, c: Expr) -> Expr:
        return self._operand(self.places.peephole, direction, place * self.hidden + j) * c

    def _operand(self, place: int | None, *indices: Expr | int) -> Expr:
        return self._zero() if place is None else self.given[place][indices]

    def _activation(self, direction: int, number: int) -> Callable[[Expr], Expr]:
        name = self.cell.activations[direction][number]
        clip = self.cell.clip if number < 2 else None  # a cell's state is no gate

        def applied(value: Expr) -> Expr:
            if clip is not None:
                limit = tirx.const(clip, self.dtype)
                value = tirx.max(tirx.min(value, limit), -limit)
            if name == "Relu":
                return tirx.max(value, self._zero())
            return tirx.sigmoid(value) if name == "Sigmoid" else tirx.tanh(value)

        return applied

    def _each(self, count: int | None = None) -> AbstractContextManager[Expr]:
        """Open a loop over `count` elements, the hidden ones by default, independent of each other."""
        return self._loop(self.hidden if count is None else count, {ALONG_MEMORY: True})

    def _loop(self, count: int, annotations: dict[str, object] | None = None) -> AbstractContextManager[Expr]:
        return T.serial(tirx.const(0, "int64"), tirx.const(count, "int64"), annotations=annotations)

    def _zero(self) -> Expr:
        return tirx.const(0, self.dtype)
