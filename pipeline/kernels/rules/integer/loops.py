"""Build loops of vectors, of overlapping parts, and of rows that may be padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IfThenElse, Stmt

from ....tir.loop_nests import int64, sequence
from ....tir.operators.quads import neighbours
from ..line_buffer import loop_of

_VECTORIZED = 2
#: least lanes of a vector that is copied
_FEW = 4


def vector(lanes: int, build: Callable[[Expr], Stmt]) -> Stmt:
    """Build a statement for all lanes of a vector."""
    lane = Var("lane", "int64")
    return For(lane, int64(0), int64(lanes), _VECTORIZED, build(lane))


def over_tile(rows: int, width: int, lanes: int, build: Callable[[int, Expr], Stmt]) -> list[Stmt]:
    """Build a statement for each vector of a tile, place by place."""

    def part(row: int, first: int, lane: Expr) -> Stmt:
        return build(row, lane + first)

    return [vector(lanes, partial(part, row, first)) for row in range(rows) for first in range(0, width, lanes)]


def load_neighbours(buffer: Var, row: Sequence[Expr], first: Expr, count: int, after: Expr | int = 0) -> Expr:
    """Load so many elements of a row, `after` the first, as one integer: see tir/operators/quads.py."""
    return neighbours(*(tirx.BufferLoad(buffer, [*row, first + (after + n)]) for n in range(count)))


def in_vectors(first: int, end: int, most: int, store: Callable[[Expr], BufferStore]) -> list[Stmt]:
    """Store from `first` up to `end` by vectors of at most `most` lanes: the last one overlaps, short rests are loops."""
    lanes = most
    while lanes > max(end - first, 1):
        lanes //= 2
    if lanes < _FEW:
        place = Var("place", "int64")
        return [loop_of(place, end - first, store(place + first))] if first < end else []
    whole, rest = divmod(end - first, lanes)

    def part(start: Expr) -> Stmt:
        return vector(lanes, lambda lane: store(start + lane))

    number = Var("number", "int64")
    parts = [loop_of(number, whole, part(number * lanes + first))]
    return [*parts, part(int64(end - lanes))] if rest else parts


def in_tiles(extent: int, size: int, build: Callable[[Expr, range, int], Stmt]) -> list[Stmt]:
    """Loop over tiles of a whole, built from their start, what it may be and their size; the rest is a tile of its own."""
    whole, rest = divmod(extent, size)
    tile, starts = Var("tile", "int64"), range(0, whole * size, size)
    parts = [loop_of(tile, whole, build(tile * size, starts, size))] if whole else []
    last = range(starts.stop, starts.stop + 1)
    return [*parts, build(int64(starts.stop), last, rest)] if rest else parts


def guarded(condition: Expr | None, filled: list[Stmt], empty: list[Stmt]) -> Stmt:
    """Run `filled` if a row is not padding, else `empty`."""
    return sequence(filled) if condition is None else IfThenElse(condition, sequence(filled), sequence(empty))


def overlapped(name: str, whole: int, size: int, build: Callable[[Expr], Stmt]) -> Stmt:
    """Loop over parts of `size` of a whole, built from their starts: the last one overlaps the one before.

    Starts are not the result of a minimum: TVM moves constants into these, and addresses of neighbours would not share theirs.
    """
    var, (count, rest) = Var(name, "int64"), divmod(whole, size)
    if not rest:
        return loop_of(var, count, build(var * size)) if count > 1 else build(int64(0))
    return loop_of(var, count + 1, build(var * size - tirx.floordiv(var, count) * (size - rest)))


def by_value(value: Expr, cases: Iterable[tuple[int, Stmt]], found: Stmt | None = None) -> Stmt:
    """Run the statement of a value, `found` for all others; without that, the first one's."""
    for number, stmt in cases:
        found = stmt if found is None else IfThenElse(value == number, stmt, found)
    assert found is not None
    return found
