"""Find operands that may be stored at the end of a result: their elements are read before the result is written over them.

    for h:                                              y  0 1 2 3 4 5 6 7        x0 … x5 lie two elements in
        for i: y[4 h + i] = x[3 h + i]    (i < 3)       x      0 1 2 3 4 5
        y[4 h + 3] = z[h]                               y3 is written once x0 to x2 are read

    for i: m = max(m, x[i])                             an operand as large as the result lies in it, though its
    for i: y[i] = x[i] - m                              elements are read for others: all of them are read by then

Unlike the other overlays this one holds for the order of the loops alone. All code that a compiler makes of them keeps
it, as operand and result are then one array to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tvm.ir import TensorLoad, Var
from tvm.s_tir import SBlockRealize
from tvm.tirx import AttrStmt, BufferStore, For, ForKind, IfThenElse, SeqStmt, Stmt

from ..index_grid import Grid, Mask, NoMatch, chunks
from ..stores import Store

#: a smaller part of the result than one of so many is not worth the analysis; nor are more iterations
WORTH, MOST_ITERATIONS = 8, 1 << 24
#: reads of an element in one store, if the result is no larger: a product reads an element more often, and too late
_MOST_READS = 4
#: orders that are the same on every machine: a vector reads all its lanes before it writes one
_IN_ORDER = (ForKind.SERIAL, ForKind.UNROLLED, ForKind.VECTORIZED)


class Turns(NamedTuple):
    """Turns of a store: `first`, and by loop around it, outermost first, the turns of one iteration."""

    first: int
    each: tuple[int, ...]


def end_shift(
    body: Stmt,
    operand: Var,
    result: Var,
    found: Sequence[Store],
    reads: Sequence[tuple[Store, TensorLoad, Sequence[Mask]]],
) -> int | None:
    """Return the shift, in elements, of an operand at a result's end that may be overwritten; None if it may not.

    `found` are the stores of `body` in text order, `reads` all loads of the operand with the masks on them.
    """
    held, whole = (math.prod(int(extent) for extent in each.ty.shape) for each in (operand, result))
    if held > whole or held * WORTH < whole or any(store.iterations > MOST_ITERATIONS for store in found):
        return None
    if held == whole and any(store.iterations > _MOST_READS * held for store, _, _ in reads):
        return None
    read, written = np.full(held, -1), np.full(whole, np.iinfo(np.int64).max)
    try:
        turns = dict(zip(map(id, found), _turns(body)[1], strict=True))
        for store, load, masks in reads:
            for grid in chunks(store.loops, store.bindings):
                np.maximum.at(read, *_moments(grid, store, turns[id(store)], grid.flat(load.indices, operand), masks))
        for store in found:
            if store.buffer.same_as(result):
                for grid in chunks(store.loops, store.bindings):
                    np.minimum.at(
                        written, *_moments(grid, store, turns[id(store)], grid.flat(store.indices, result), store.masks)
                    )
    except (NoMatch, IndexError):
        return None
    return whole - held if (read <= written[whole - held :]).all() else None


def _moments(
    grid: Grid, store: Store, turns: Turns, places: np.ndarray, masks: Sequence[Mask]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the places and the turns of all iterations that may take place. Raises NoMatch."""
    turn: np.ndarray | int = turns.first
    for loop, each in zip(store.loops, turns.each, strict=True):
        turn = turn + (grid.values[loop.var] - loop.start) * each
    places, moments = (np.broadcast_to(each, grid.shape) for each in (places, turn))
    where = np.broadcast_to(grid.mask(masks), grid.shape)
    if places.size and places[where].min(initial=0) < 0:
        raise NoMatch("an index below zero")
    return places[where], moments[where]


def _turns(stmt: Stmt, vector: bool = False) -> tuple[int, list[Turns]]:
    """Return a statement's turns, and its stores' turns in text order. Raises NoMatch."""
    if isinstance(stmt, BufferStore):
        return 1, [Turns(0, ())]
    if isinstance(stmt, For):
        if stmt.kind not in _IN_ORDER:
            raise NoMatch("a loop without an order")
        taken, inside = _turns(stmt.body, vector or stmt.kind == ForKind.VECTORIZED)
        return taken * int(stmt.extent), [Turns(each.first, (taken, *each.each)) for each in inside]
    if isinstance(stmt, SBlockRealize):
        parts = [each for each in (stmt.block.init, stmt.block.body) if each is not None]
    elif isinstance(stmt, IfThenElse):
        parts = [each for each in (stmt.then_case, stmt.else_case) if each is not None]
    elif isinstance(stmt, SeqStmt):
        parts = list(stmt.seq)
    else:
        parts = [stmt.body] if isinstance(stmt, AttrStmt) else []
    total, found = 0, []
    for part in parts:
        taken, inside = _turns(part, vector)
        found += [each._replace(first=each.first + total) for each in inside]
        total += taken
    if vector and len(found) > 1:
        raise NoMatch("several stores in one vector")
    return total, found
