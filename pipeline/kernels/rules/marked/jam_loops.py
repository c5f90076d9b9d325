"""Keep sums of several iterations in registers: unroll a marked loop and jam its copies.

    for v in 0..n:                          for block:
        for row in 0..m:                        for rows:
            total = bias[v]                         totals[0..r][0..w] = bias[…]
            for k: total += x[row, k]·w[k, v]       for k: totals[i][j] += x[row + i, k]·w[k, v + j]
            y[row, v] = total                       y[…] = totals[0..r][0..w]

w is some vectors, r some rows. A rest of w is covered by vectors that overlap, so that an iteration may run twice:
iterations must read nothing that they write. Unroll-and-jam: Callahan, Carr, Kennedy, "Improving register allocation
for subscripted variables" (1990).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import AllocBuffer, BufferStore, For, PrimFunc, SeqStmt, Stmt

from ....frontend.relax.recurrent.arrays import IN_REGISTERS, ROWS
from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.loop_nests import buffer_of, int64, sequence

_SERIAL, _VECTORIZED = 0, 2
#: share of the registers that sums may take: factors and weights need some
_FOR_SUMS = 0.75
_MOST_ROWS = 4


@dataclass(frozen=True)
class _Piece:
    """Hold `lanes` iterations from `start` on, `start` after the first of the block, for row `row`."""

    row: int
    start: int
    lanes: int


def jam_loops(kernel: PrimFunc, machine: Machine) -> PrimFunc:
    """Return `kernel` with its marked loops in registers of `machine`; the kernel itself if it marks none."""

    def jammed(loop: For) -> Stmt:
        return _jammed(loop, machine) if IN_REGISTERS in loop.annotations else loop

    body = tvm_ffi.structural_map(kernel.body, (For, jammed))
    return kernel if body.same_as(kernel.body) else kernel.with_body(body)


def _jammed(loop: For, machine: Machine) -> Stmt:
    extent, body, rows = int(loop.extent), loop.body, None
    if isinstance(body, For) and ROWS in body.annotations:
        rows, body = body, body.body
    totals = [each.buffer for each in body.seq if isinstance(each, AllocBuffer)]
    sums = sum(math.prod(int(each) for each in buffer.shape) for buffer in totals)
    vectors, height = _tile(machine, sums, extent, int(rows.extent) if rows is not None else 1)
    width = vectors * machine.lanes
    whole, rest = divmod(extent, width)
    parts = []
    for count, size, start in ((whole, width, 0), (1 if rest else 0, rest, whole * width)):
        if not count:
            continue
        block = Var("block", "int64")
        inner = _rows(rows, height, body, loop.loop_var, block * size + start, _pieces(size, machine.lanes), totals)
        parts.append(For(block, int64(0), int64(count), _SERIAL, inner))
    return sequence(parts)


def _tile(machine: Machine, sums: int, extent: int, rows: int) -> tuple[int, int]:
    """Choose the vectors and the rows of a tile: fewest loads for each product."""
    most = int(machine.registers * _FOR_SUMS)
    choices = [
        (vectors, height)
        for vectors in (1, 2, 4, 8, 16)
        for height in range(1, _MOST_ROWS + 1)
        if rows % height == 0 and vectors * height * sums <= most and (vectors == 1 or vectors * machine.lanes <= extent)
    ]
    return min(choices, key=lambda each: (1 / each[1] + 1 / (each[0] * sums), -each[0]), default=(1, 1))


def _pieces(size: int, lanes: int) -> list[tuple[int, int]]:
    """Cover `size` iterations by vectors: pairs of start and lanes, the last two may overlap."""
    while lanes > size:
        lanes //= 2
    starts = list(range(0, size - lanes + 1, lanes))
    return [(start, lanes) for start in dict.fromkeys([*starts, size - lanes])]


def _rows(
    rows: For | None, height: int, body: Stmt, unit: Var, first: Expr, pieces: Sequence[tuple[int, int]],
    totals: Sequence[Var],
) -> Stmt:  # fmt: skip
    places = [_Piece(row, start, lanes) for row in range(height) for start, lanes in pieces]
    own = {
        each: buffer_of("totals", [*map(int, each.shape), len(places), pieces[0][1]], str(each.dtype)) for each in totals
    }
    if rows is None:
        return _copies(body, unit, first, None, int64(0), places, own)
    group = Var("rows", "int64")
    inner = _copies(body, unit, first, rows.loop_var, group * height, places, own)
    return For(group, int64(0), int64(int(rows.extent) // height), _SERIAL, inner)


def _copies(
    stmt: Stmt, unit: Var, first: Expr, row: Var | None, first_row: Expr, places: Sequence[_Piece],
    own: Mapping[Var, Var],
) -> Stmt:  # fmt: skip
    """Copy a statement for each of `places`, inside the loops in it."""

    def copies(part: Stmt) -> Stmt:
        return _copies(part, unit, first, row, first_row, places, own)

    if isinstance(stmt, SeqStmt):
        return sequence([copies(part) for part in stmt.seq])
    if isinstance(stmt, AllocBuffer):
        return AllocBuffer(own[stmt.buffer])
    if isinstance(stmt, For):
        return For(stmt.loop_var, stmt.min, stmt.extent, stmt.kind, copies(stmt.body))
    return sequence([_copy(stmt, unit, first, row, first_row, number, place, own) for number, place in enumerate(places)])


def _copy(
    store: BufferStore, unit: Var, first: Expr, row: Var | None, first_row: Expr, number: int, place: _Piece,
    own: Mapping[Var, Var],
) -> Stmt:  # fmt: skip
    lane = Var("lane", "int64") if place.lanes > 1 else int64(0)

    def moved(part: Expr) -> Expr:
        values = {unit: first + place.start + lane} | ({} if row is None else {row: first_row + place.row})
        return tvm_ffi.structural_map(replaced(part, values), (TensorLoad, _own_load))

    def _own_load(load: TensorLoad) -> Expr:
        if load.source not in own:
            return load
        return tirx.BufferLoad(own[load.source], [*load.indices, int64(number), lane])

    indices = [moved(index) for index in store.indices]
    if store.buffer in own:
        made = BufferStore(own[store.buffer], moved(store.value), [*indices, int64(number), lane])
    else:
        made = BufferStore(store.buffer, moved(store.value), indices)
    return For(lane, int64(0), int64(place.lanes), _VECTORIZED, made) if place.lanes > 1 else made
