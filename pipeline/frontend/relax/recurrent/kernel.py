"""Build LSTM, GRU and RNN as one kernel a node: a loop over the steps, states in its results.

    for each direction:
        h, c = initial states
        for each step:                                 in groups: W·x of a group at once, if that is worth its memory
            for each tile of units, each sequence:
                sums = biases + W·x[step] + R·h        all gates of a tile, in registers
                y[step], c = cell(sums, h, c)          cell.py
            h = y[step]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tirx
from tvm.ir import Expr, Var
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm.tirx import Stmt

from .arrays import RECURRENCE, Arrays, Cell, Operands, each, int64, loop
from .cell import Step


def recurrent(*operands: te.Tensor, cell: Cell, places: Operands, hidden: int) -> list[te.Tensor]:
    """Return Y_h and, of an LSTM, Y_c (directions, batch, hidden), then Y (steps, directions, batch, hidden) if any."""
    x = operands[places.x]
    steps, batch, _ = (int(extent) for extent in x.shape)
    state = [len(cell.reverse), batch, hidden]
    named = {"y_h": state}
    if cell.op == "LSTM":
        named["y_c"] = state
    if cell.sequence:
        named["y"] = [steps, *state]
    shapes = list(named.values())
    results = [tirx.decl_buffer(shape, x.dtype, name) for name, shape in named.items()]

    def generate(ins: Sequence[Var], outs: Sequence[Var]) -> Stmt:
        return _layer(Arrays(cell, places, ins, outs))

    return te.extern(shapes, list(operands), generate, out_buffers=results, name=cell.op.lower(), tag="recurrent")


def _layer(arrays: Arrays) -> Stmt:
    """Write all directions: in one loop if their cells are alike."""
    directions = len(arrays.cell.reverse)
    alike = len(set(arrays.cell.activations)) == 1
    parts = []
    for first in (0,) if alike else range(directions):
        with IRBuilder() as builder:
            with loop(directions if alike else 1) as direction:
                _direction(arrays, direction if alike else int64(first), first)
            parts.append(builder.get())
    return tirx.SeqStmt([*map(tirx.AllocBuffer, arrays.own), *parts])


def _direction(arrays: Arrays, direction: Expr, number: int) -> None:
    """Write all steps of a direction, whose activations are those of direction `number`."""
    places, hidden = arrays.places, arrays.hidden
    for state, place in ((arrays.y_h, places.h), (arrays.y_c, places.c)):
        if state is not None:
            with loop(arrays.batch) as sequence, each(hidden) as j:
                start = arrays.operand(place, direction, sequence, j)
                if place is not None and places.lengths is not None:  # ONNX Runtime has zeros after no step
                    start = tirx.Select(arrays.length(sequence) > 0, start, arrays.zero())
                state[direction, sequence, j] = start
    with loop(arrays.steps // arrays.group, RECURRENCE) as group:
        first = group * arrays.group
        if arrays.ahead is not None:
            Step.write_ahead(arrays, direction, number, first)
        with loop(arrays.group) as place:
            step = Step(arrays, direction, number, first, place)
            step.write()
            with step.sequences() as sequence, each(hidden) as j:
                arrays.y_h[direction, sequence, j] = step.new(sequence)[j]
    if places.lengths is None or arrays.y is None:
        return
    with (
        loop(arrays.steps) as row, loop(arrays.batch) as sequence,
        T.If(row >= arrays.length(sequence)), T.Then(), each(hidden) as j,
    ):  # fmt: skip
        arrays.y[row, direction, sequence, j] = arrays.zero()
