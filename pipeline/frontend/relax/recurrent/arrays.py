"""Describe a recurrent kernel: its cells, operands, results and own buffers; open its loops."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.script.ir_builder import tirx as T

from ...canonical.operators.recurrent_activations import Activation
from ..checked import checked

#: annotation of a loop along memory with independent iterations: kernels/rules/marked/vector_loops.py
ALONG_MEMORY = "passfit.along_memory"
#: annotation of a loop over steps, each of which reads the states of the one before
RECURRENCE = "passfit.recurrence"
#: annotations of a loop whose iterations each add up sums of their own, and of one inside: kernels/rules/marked/jam_loops.py
IN_REGISTERS, ROWS = "passfit.in_registers", "passfit.rows"
#: floats of weights that no fast cache holds; most steps of a group; least memory of a sequence beside its sums
_LARGE, _MOST_STEPS, _SHARE = 65536, 8, 32
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@dataclass(frozen=True)
class Cell:
    """Describe the cells of a node: `op` is LSTM, GRU or RNN; activations are given for each direction.

    `reverse` tells for each direction whether it runs backwards. `clip` limits the sums of gates to ±clip.
    `input_forget` tells whether a cell forgets what its input gate leaves.
    `sequence` tells whether all states are a result, or only the last ones.
    """

    op: str
    activations: tuple[tuple[Activation, ...], ...]
    reverse: tuple[bool, ...]
    clip: float | None = None
    linear_before_reset: bool = False
    input_forget: bool = False
    sequence: bool = True

    @property
    def gates(self) -> int:
        return _GATES[self.op]

    @property
    def sums(self) -> int:
        """Count the sums of a unit: a GRU may reset R·h of its new state, which is then a sum of its own."""
        return self.gates + self.linear_before_reset

    @property
    def tile(self) -> int:
        """Return the units of a tile: about as many sums as registers hold."""
        return 64 if self.op == "RNN" else 16


@dataclass(frozen=True)
class Operands:
    """Place each operand of a kernel: its number among the operands, None if the node lacks it.

    `x` (steps, batch, inputs), `w` and `r` (directions, inputs or hidden, gates × hidden) or packed (directions, all)
    by weights.py, `bias` (directions, sums × hidden), `lengths` (batch), `h` and `c` (directions, batch,
    hidden), `peephole` (directions, 3 × hidden).
    """

    x: int = 0
    w: int = 1
    r: int = 2
    bias: int | None = None
    lengths: int | None = None
    h: int | None = None
    c: int | None = None
    peephole: int | None = None


class Array:
    """Read and write a buffer by subscripts, inside a builder."""

    def __init__(self, buffer: Var, *outer: Expr):
        self.buffer, self._outer = buffer, outer

    def __getitem__(self, indices: object) -> Expr:
        return tirx.BufferLoad(self.buffer, self._subscripts(indices))

    def __setitem__(self, indices: object, value: Expr) -> None:
        T.buffer_store(self.buffer, value, self._subscripts(indices))

    def at(self, *outer: Expr) -> Array:
        """Return the part with these first subscripts."""
        return Array(self.buffer, *self._outer, *outer)

    def _subscripts(self, indices: object) -> list[Expr]:
        inner = indices if isinstance(indices, tuple) else (indices,)
        return [int64(index) if isinstance(index, int) else index for index in (*self._outer, *inner)]


class Arrays:
    """Hold the operands, results and own buffers of a kernel; `own` are its allocations.

    `sums` (batch, sums, tile) are those of a tile. `new` (batch, hidden) is h after a step where Y holds no such row,
    `reset` (batch, hidden) is h times the reset gate, for a GRU that needs it before a product. `ahead` (group, gates,
    hidden) are the input's parts of the sums of a group of steps, if they come at once.
    """

    def __init__(self, cell: Cell, places: Operands, ins: Sequence[Var], outs: Sequence[Var]):
        self.cell, self.places = cell, places
        self.given = [Array(each) for each in ins]
        self.y_h, *rest = map(Array, outs)
        self.y = rest.pop() if cell.sequence else None
        self.y_c = rest.pop() if rest else None
        _, self.batch, self.hidden = (int(extent) for extent in outs[0].shape)
        self.steps, _, self.inputs = (int(extent) for extent in ins[places.x].shape)
        self.dtype = str(outs[0].dtype)
        self.own: list[Var] = []
        self.sums = self._allocated("sums", self.batch, cell.sums, min(cell.tile, self.hidden))
        self.new = self._allocated("new", self.batch, self.hidden) if self.y is None else None
        resets = cell.op == "GRU" and not cell.linear_before_reset
        self.reset = self._allocated("reset", self.batch, self.hidden) if resets else None
        self.group = self._group()
        self.ahead = self._allocated("ahead", self.group, cell.gates, self.hidden) if self.group > 1 else None

    def operand(self, place: int | None, *indices: Expr | int) -> Expr:
        """Read an operand; zero if the node lacks it."""
        return self.zero() if place is None else self.given[place][indices]

    def length(self, sequence: Expr) -> Expr:
        return checked(
            tirx.Cast("int64", self.given[self.places.lengths][sequence]), 0, self.steps, "a length is out of range"
        )

    def zero(self) -> Expr:
        return tirx.const(0, self.dtype)

    def _group(self) -> int:
        """Choose the steps of a group: W is large, and the sums are small beside the sequence that runs through."""
        weights, sequence = self.inputs * self.cell.gates * self.hidden, self.steps * (self.inputs + self.hidden)
        if self.batch > 1 or self.places.lengths is not None or weights < _LARGE:
            return 1
        return max(
            size
            for size in range(1, _MOST_STEPS + 1)
            if self.steps % size == 0 and (size == 1 or size * self.cell.gates * self.hidden * _SHARE <= sequence)
        )

    def _allocated(self, name: str, *shape: int) -> Array:
        self.own.append(tirx.decl_buffer([int64(extent) for extent in shape], self.dtype, name))
        return Array(self.own[-1])


def loop(count: int, *marks: str) -> AbstractContextManager[Expr]:
    """Open a loop over `count` iterations, with annotations."""
    return T.serial(int64(0), int64(count), annotations={mark: True for mark in marks} or None)


def each(count: int) -> AbstractContextManager[Expr]:
    """Open a loop over `count` elements along memory, independent of each other."""
    return loop(count, ALONG_MEMORY)


def int64(value: int) -> Expr:
    return tirx.const(value, "int64")
