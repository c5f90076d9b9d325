"""Match sums of integer products by four, read their data by words of four bytes, and store their results: see neon_c2s4.py.

word     four neighbouring bytes; the last of a line overlaps with the one before
value    two channels of a place: bytes picked from words, or the zero point where there is padding

Four neighbouring places are stored at once where the result has them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import ceil

from tvm import sym, tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, IfThenElse, IntImm, Stmt

from ....targets import Machine
from ....tir.expressions import uses
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import flat_index, int64, sequence
from ....tir.operators.quads import byte, couple, neighbours, picked
from .integer_sum import IntegerSum
from .loops import by_value, guarded, vector
from .micro_kernel import MicroKernel
from .sum_builder import SumBuilder

#: channels that are neighbours in memory are read by so many; places side by side of a tile
CHUNK, PLACES = 16, 4
#: lanes of vectors of filters
LANES = 8
#: bytes of a word
_WORD = 4


@dataclass(frozen=True)
class Tile:
    """Places of a tile: `rows` from `start` on, with the axes around. `number` is its quad, `starts` what `start` may be."""

    axes: dict[Var, Expr]
    number: Expr
    start: Expr
    starts: range
    rows: int


def vectors_of(rows: int) -> list[int]:
    """Return the first places of vectors for so many rows; the last overlaps with the one before."""
    return [min(first, max(rows - PLACES, 0)) for first in range(0, rows, PLACES)]


class QuadWindows(SumBuilder):
    """Read the form of a sum: `c` is the summed axis in fours, `dense` if its channels are neighbours in memory.

    `steps` is the number of quads read at once, `chunk` the channels of these. A tile has `width` filters, and sums `acc`, of four
    bytes. `low` and `high` bound the columns that are not padding. Raises NoMatch for other forms.
    """

    c: Var
    width: int
    acc: Var
    #: values a place has: two halves of a quad, int16, or one of four channels for dot products
    halves = 2

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        zero, self.dtype = self.bytes_()
        if not isinstance(zero, IntImm):
            raise NoMatch("the zero point is computed")
        #: the zero point of int8
        self.zero = int(zero) - (128 if self.dtype == "uint8" else 0)
        self.c, self.inner = self._channels()
        self.others = [var for var in self.summed if not var.same_as(self.tap) and not var.same_as(self.c)]
        at = next((place for place, index in enumerate(self.indices) if self.c.same_as(index)), None)
        extents = [int(extent) for extent in self.data.source.ty.shape]
        last = max(place for place, extent in enumerate(extents) if extent > 1)
        plain = self.border is None and self.tap is None and self.stride == 1
        self.dense = plain and at == last and self.axes[self.c] % CHUNK == 0
        self.chunk = CHUNK if self.dense else 4
        self.quads = ceil(self.axes[self.c] / 4)
        self.rows_last, self.bytes = self._stores()
        self.steps = CHUNK // 4 if self.dense else 1

    def _channels(self) -> tuple[Var, int]:
        """Find the summed axis to take by four, and the weight's dimension it moves along."""
        for index in self.weight.indices:
            if not isinstance(index, IntImm) and index not in self.axes:
                raise NoMatch("the weight is not indexed by axes")
        moved = [
            var for var in self.summed if not var.same_as(self.tap) and any(uses(index, var) for index in self.indices)
        ]
        fit = [var for var in moved if self.axes[var] > 2]
        if not fit:
            raise NoMatch("no summed axis in fours")
        # the least padding to fours, then the longest: rows of a window, if there are one or two channels
        c = min(fit, key=lambda var: (ceil(self.axes[var] / 4) / self.axes[var], -self.axes[var]))
        return c, self.weight_places([c])[0]

    def _stores(self) -> tuple[bool, bool]:
        """Return whether neighbouring places are neighbours in the result, and whether it holds bytes."""
        x, f = Var("x", "int64"), Var("f", "int64")
        own = {var: int64(0) for var in self.axes} | {self.x: x, self.f: f}
        _, value, indices = self.result(tirx.const(0, "int32"), own)
        linear = sym.detect_linear_equation(indices[-1], [x])
        along = linear and isinstance(linear[0], IntImm) and int(linear[0]) == 1 and not uses(indices[-1], f)
        return bool(along), str(value.ty.dtype) in ("int8", "uint8")

    def read_memory(self) -> None:
        """Find the steps of columns and channels in memory: one of them has to be 1. Raises NoMatch."""
        channel, column = Var("channel", "int64"), Var("column", "int64")
        raw = self.raw_at({**self.loops_over(self.axes), self.c: channel}, column)
        found = sym.detect_linear_equation(flat_index(raw.source.ty.shape, raw.indices), [channel, column])
        if not found or not all(isinstance(each, IntImm) for each in found[:2]):
            raise NoMatch("channels or columns have no step in memory")
        between, self.column_step = (int(each) for each in found[:2])
        if between != 1 and self.column_step != 1:
            raise NoMatch("neither channels nor columns are neighbours")
        self.adjacent = between == 1 and self.column_step != 1
        extents = [int(extent) for extent in raw.source.ty.shape]
        #: the dimension of neighbours in memory
        self.line = max((place for place, extent in enumerate(extents) if extent > 1), default=len(extents) - 1)
        last = raw.indices[self.line]
        neighbour = channel if self.adjacent else column
        if not uses(last, neighbour) or any(uses(last, param) for param in self.original.params):
            raise NoMatch("neighbours may be rows of a ring buffer")
        self.low, self.high = self.columns(read=False)
        #: conditions not to be padding that depend on the channel, and the others
        self.by_channel = self.conditions_along(self.c)
        self.by_row = [each for each in self.row_conditions() if not any(each.same_as(one) for one in self.by_channel)]
        if self.by_channel and (self.adjacent or self.halves > 1):
            raise NoMatch("padding along channels costs more than is gained, unless products are dot products")

    def loaded(self, tile: Tile, tap: Var, taps: int, channels: int, values: Var) -> list[Stmt]:
        """Read the values of a tile for a tap, and `channels` of four channels."""

        def stored(value: Callable[[int, int, Expr], Expr]) -> Stmt:
            def part(half: int, number: int, first: int, lane: Expr) -> BufferStore:
                return BufferStore(values, _unsigned(value(half, first, lane)), [int64(half), int64(number), lane])

            parts = product(range(self.halves), enumerate(vectors_of(tile.rows)))
            return sequence([vector(PLACES, partial(part, half, *vector_)) for half, vector_ in parts])

        first = tile.start * self.stride + tap * self.step
        across = (tile.rows - 1) * self.stride + 1
        columns = sorted({start * self.stride + number * self.step for start in tile.starts for number in range(taps)})
        plain = [each for each in columns if self.low <= each <= self.high - across]

        def alone(column: int) -> Stmt:
            edge = replace(tile, start=int64(column))
            return stored(partial(self._value, edge, channels, (self.low - column, self.high - column)))

        cases = [(column, alone(column)) for column in columns if column not in plain]
        there = by_value(first, cases) if cases else None
        if plain:
            readable = self.low - plain[0], self.high - plain[-1]
            whole = stored(partial(self._value, replace(tile, start=first), channels, readable))
            inside = tirx.all(first >= self.low, first <= self.high - across)
            there = whole if there is None else IfThenElse(inside, whole, there)
        assert there is not None
        condition = self.row_inside({**tile.axes, self.c: int64(0)}, self.by_row)
        return [guarded(condition, [there], [stored(lambda half, _first, _lane: self._nothing(half))])]

    def _value(self, tile: Tile, channels: int, inside: tuple[int, int], half: int, first: int, lane: Expr) -> Expr:
        """Return the value of a lane: `start` of the tile is its first column, those `inside` count from there."""
        size = 4 // self.halves
        own = [min(half * size + n, channels - 1) for n in range(size)]
        columns = [(first + row) * self.stride for row in range(min(PLACES, tile.rows))]
        (low, high), step = inside, self.column_step
        #: line (of a channel, unless these are neighbours) and place of each byte
        asked = [
            [
                ((0, column * step + each) if self.adjacent else (each, column)) if low <= column < high else None
                for each in own
            ]
            for column in columns
        ]
        end = (high - 1) * step + channels if self.adjacent else high
        words = _covering(
            [each for bytes_ in asked for each in bytes_ if each], low * step if self.adjacent else low, end
        )
        if not words:
            return self._nothing(half)
        made = [self._word(tile, line, place, count) for line, place, count in words]
        outside = _WORD * len(made)
        if any(None in bytes_ for bytes_ in asked):
            made.append(self._fill)

        def found(each: tuple[int, int] | None) -> int:
            if each is None:
                return outside
            return next(
                _WORD * n + each[1] - place
                for n, (line, place, count) in enumerate(words)
                if line == each[0] and place <= each[1] < place + count
            )

        places = [found(each) for bytes_ in asked for each in bytes_]
        places += places[:size] * (PLACES - len(asked))
        return picked(lane, made, places, f"int{8 * size}") ^ self.mask(half)

    def _word(self, tile: Tile, line: int, place: int, count: int) -> Expr:
        """Read neighbouring bytes of a line; fewer than four one by one."""
        axes = {**tile.axes, self.c: tile.number * 4 + line}
        raw = self.raw_at(axes, tile.start)
        indices = raw.indices
        before, at, after = indices[: self.line], indices[self.line], indices[self.line + 1 :]

        def element(n: int) -> Expr:
            return tirx.BufferLoad(raw.source, [*before, at + (place + n), *after])

        if count == _WORD:
            word: Expr = neighbours(*(element(n) for n in range(_WORD)))
        else:
            word = tirx.const(0, "int32")
            for n in range(count):
                word = word | tirx.shift_left(
                    tirx.bitwise_and(element(n).astype("int32"), tirx.const(0xFF, "int32")), tirx.const(8 * n, "int32")
                )
        if not self.by_channel:
            return word
        return tirx.if_then_else(self.row_inside(axes, self.by_channel), word, self._fill)

    @property
    def _fill(self) -> Expr:
        """Return a word of zero points as they are in memory."""
        value = (self.zero & 0xFF) ^ (0x80 if self.dtype == "uint8" else 0)
        return _constant(value * 0x01010101, 32)

    def mask(self, half: int) -> Expr:
        """Return the bits to flip: of bytes without sign their highest, of the second half all."""
        flipped = (0x80808080 if self.dtype == "uint8" else 0) ^ (0xFFFFFFFF if half else 0)
        return _constant(flipped, 32 // self.halves)

    def _nothing(self, half: int) -> Expr:
        """Return the value of zero points: the padding."""
        word = ((self.zero & 0xFF) * 0x01010101) ^ (0xFFFFFFFF if half else 0)
        return _constant(word, 32 // self.halves)

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the int32 sum of a place of the tile and a filter of its block, in a vectorised loop."""
        raise NotImplementedError

    def stored(self, outer: dict[Var, Expr], start: Expr, block: Expr, rows: int) -> list[Stmt]:
        """Store the epilogue of a tile of `rows` places from `start` on."""

        def result(row: Expr, sum_: Expr, filter_: Expr) -> tuple[Var, Expr, list[Expr]]:
            own = {**outer, self.x: start + row, self.f: block * self.width + filter_}
            return self.result(sum_, own)

        def alone(row: int, first: int, lane: Expr) -> BufferStore:
            return BufferStore(*result(int64(row), self.sum_at(row, lane + first), lane + first))

        def together(row: int, first: int, free: int, lane: Expr) -> BufferStore:
            four = [result(int64(row + n), self.sum_at(row + n, lane + first), lane + first)[1] for n in range(PLACES)]
            word = couple(couple(four[0], four[1]), couple(four[2], four[3])).astype("uint32")
            return BufferStore(self.acc, word, [int64(row), lane + free])

        def taken(row: int, filter_: int, held: int, place: Expr) -> BufferStore:
            buffer, value, indices = result(place + row, tirx.const(0, "int32"), int64(filter_))
            word = tirx.BufferLoad(self.acc, [int64(row), int64(held)]).astype("int32")
            return BufferStore(buffer, byte(word, place.astype("int32"), str(value.ty.dtype)), indices)

        parts: list[Stmt] = []
        whole = rows // PLACES * PLACES if self.rows_last and self.bytes else 0
        for row in (*range(0, whole, PLACES), *range(whole, rows)):
            for first in range(0, self.width, LANES):
                lanes = min(LANES, self.width - first)
                if row >= whole:
                    parts.append(vector(lanes, partial(alone, row, first)))
                    continue
                free = first * (int(self.acc.ty.shape[-1]) // self.width)  # sums that have been read
                parts.append(vector(lanes, partial(together, row, first, free)))
                parts += [vector(PLACES, partial(taken, row, first + n, free + n)) for n in range(lanes)]
        return parts


def _covering(asked: Sequence[tuple[int, int]], low: int, end: int) -> list[tuple[int, int, int]]:
    """Cover bytes by few words within `low` … `end`: their lines, places and bytes. Shorter lines have shorter words."""
    size = min(_WORD, end - low)
    found: list[tuple[int, int, int]] = []
    for line, place in sorted(set(asked)):
        if not found or found[-1][0] != line or place >= found[-1][1] + size:
            found.append((line, min(place, end - size), size))
    return found


def _constant(word: int, size: int) -> Expr:
    """Return the lowest bits of a number as an integer of this size."""
    low = word & ((1 << size) - 1)
    return tirx.const(low - (1 << size) if low >> (size - 1) else low, f"int{size}")


def _unsigned(value: Expr) -> Expr:
    """Return the same bits as an unsigned integer."""
    dtype = f"u{value.ty.dtype}"
    if isinstance(value, IntImm):
        return tirx.const(int(value) % (1 << value.ty.dtype.bits), dtype)
    return tirx.reinterpret(dtype, value)
