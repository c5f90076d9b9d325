"""Fill the line buffer of a band of places with couples of channels: see quad_products.py."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod

import numpy as np
from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IfThenElse, IntImm, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import conjuncts, replaced, uses
from ....tir.index_grid import Unknown, holds_along
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.quads import couple
from ..line_buffer import loop_of
from ..tile_size import divisors
from .quad_form import PLACES, QuadForm

_SERIAL, _VECTORIZED = 0, 2
#: bytes of the line buffer: preferred, at most
_LINES, _MOST_LINES = 1024, 3072


class QuadLines(QuadForm):
    """Hold the data of `tiles` tiles of `rows` places in `lines`, unless tiles read it themselves."""

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        super().__init__(kernel, repackable)
        self.width, self.rows = self.tile_shape(machine.registers * machine.lanes // (16 if self.dense else 8))
        self.tiles = self.axes[self.x] // self.rows
        if not self.direct:
            fitting = [n for n in divisors(self.tiles, self.tiles) if self._bytes(n * self.rows) <= _LINES]
            self.tiles = max(fitting, default=1)
            if self._bytes(self.tiles * self.rows) > _MOST_LINES:
                raise Unknown("a tile's lines are too long")
            self.lines = buffer_of("lines", self._line_extents(self.tiles * self.rows), "int16")

    def _line_extents(self, places: int) -> list[int]:
        columns = ceil(self.span(ceil(places / PLACES) * PLACES) / self.stride)
        return [self.quads, *(self.axes[var] for var in self.others), 2, self.stride, columns]

    def _bytes(self, places: int) -> int:
        return 2 * prod(self._line_extents(places))

    def columns(self) -> tuple[int, int]:
        """Return the first and the end of the columns that are not padding."""
        if self.border is None:
            return 0, self.span(self.axes[self.x])
        assert self.padding is not None
        axis = self.padding.iter_vars[self.along]
        across = [each for each in conjuncts(self.border) if uses(each, axis.var)]
        if any(uses(each, other.var) for each in across for other in self.padding.iter_vars if not other.var.same_as(axis.var)):
            raise Unknown("the padding of columns depends on other axes")
        there = np.ones(int(axis.dom.extent), bool)
        for each in across:
            there &= holds_along(each, axis.var, len(there))
        if not there.any():
            raise Unknown("all columns are padding")
        low, high = int(there.argmax()), len(there) - int(there[::-1].argmax())
        if not there[low:high].all():
            raise Unknown("the columns are not contiguous")
        return low, high

    def inside(self, start: int, low: int, high: int, count: int) -> tuple[int, int]:
        """Return the columns of a band that are not padding."""
        span, first = self.span(count), start * self.stride
        return min(max(low - first, 0), span), max(min(high - first, span), 0)

    def filled(self, outer: dict[Var, Expr], start: Expr, inside: tuple[int, int], span: int) -> list[Stmt]:
        """Fill the lines: couples of channels of all columns."""
        loops = {var: Var(var.name, "int64") for var in self.others}
        whole, rest = divmod(self.axes[self.c], 4)
        quad = Var("quad", "int64")
        parts = []
        for number, channels, extent in ((quad, 4, whole), (int64(whole), rest, 1)):
            if not channels or not extent:
                continue
            stmt = self._quad_filled(outer, loops, start, number, channels, inside, span)
            for var, loop in reversed(loops.items()):
                stmt = For(loop, int64(0), int64(self.axes[var]), _SERIAL, stmt)
            parts.append(stmt if isinstance(number, IntImm) else For(number, int64(0), int64(extent), _SERIAL, stmt))
        return parts

    def _quad_filled(
        self, outer: dict[Var, Expr], loops: dict[Var, Var], start: Expr, quad: Expr, channels: int, inside: tuple[int, int], span: int
    ) -> Stmt:
        """Fill the lines of a quad with `channels` of its four channels, column by column."""
        first, end = inside

        def stored(half: int, phase: int, place: Expr, value: Expr) -> Stmt:
            return BufferStore(self.lines, value, [quad, *loops.values(), int64(half), int64(phase), place])

        def copied(half: int, phase: int, place: Expr) -> Stmt:
            def one(number: int) -> Expr:
                if number >= channels:
                    return tirx.const(0, self.dtype)
                return self.byte_at(outer, loops, quad * 4 + number, start * self.stride + (place * self.stride + phase))

            return stored(half, phase, place, couple(one(2 * half), one(2 * half + 1)) ^ self.mask(half))

        body: list[Stmt] = []
        for half in (0, 1):
            for phase in range(self.stride):
                low, high, last = (-(-(each - phase) // self.stride) for each in (first, end, span))
                for place in (*range(low), *range(high, last)):
                    body.append(stored(half, phase, int64(place), self._nothing(half)))
                body += self._along(low, high, lambda place, half=half, phase=phase: copied(half, phase, place))
        stmt = sequence(body)
        rows = self._rows_inside(outer, loops)
        if rows is None:
            return stmt
        empty: list[Stmt] = []
        for half in (0, 1):
            for phase in range(self.stride):
                place = Var("place", "int64")
                empty.append(For(place, int64(0), int64(-(-(span - phase) // self.stride)), _SERIAL, stored(half, phase, place, self._nothing(half))))
        return IfThenElse(rows, stmt, sequence(empty))

    def _along(self, low: int, high: int, made: Callable[[Expr], Stmt]) -> list[Stmt]:
        """Make vectors of neighbouring places; the last overlaps with the one before."""
        if low >= high:
            return []
        lanes = next((each for each in (8, 4) if high - low >= each), 1)
        if self.stride > 1 or lanes == 1:
            place = Var("place", "int64")
            return [For(place, int64(0), int64(high - low), _SERIAL, made(place + low))]
        whole, rest = divmod(high - low, lanes)
        number, lane = Var("number", "int64"), Var("lane", "int64")
        parts = [loop_of(number, whole, For(lane, int64(0), int64(lanes), _VECTORIZED, made(number * lanes + (lane + low))))]
        if rest:
            lane = Var("lane", "int64")
            parts.append(For(lane, int64(0), int64(lanes), _VECTORIZED, made(lane + (high - lanes))))
        return parts

    def _rows_inside(self, outer: dict[Var, Expr], loops: dict[Var, Var]) -> Expr | None:
        """Return the condition for a row to be inside the padding, if there is any."""
        if self.border is None:
            return None
        assert self.padding is not None
        axis = self.padding.iter_vars[self.along].var
        along = [each for each in conjuncts(self.border) if not uses(each, axis)]
        if not along:
            return None
        indices = self._at(outer, loops, int64(0), int64(0))
        values = {each.var: index for each, index in zip(self.padding.iter_vars, indices)}
        return tirx.all(*(replaced(each, values) for each in along))

    def _at(self, outer: dict[Var, Expr], loops: dict[Var, Var], channel: Expr, column: Expr) -> list[Expr]:
        """Return the indices of an element of the data, or of its padded form."""
        taps = {} if self.tap is None else {self.tap: int64(0)}
        values = {**outer, **loops, **taps, self.x: int64(0), self.c: channel}
        indices = [replaced(index, values) for index in self.indices]
        indices[self.along] = indices[self.along] + column
        return indices

    def byte_at(self, outer: dict[Var, Expr], loops: dict[Var, Var], channel: Expr, column: Expr) -> Expr:
        """Load an element of the data as it is in memory."""
        indices = self._at(outer, loops, channel, column)
        if self.border is None:
            return tirx.BufferLoad(self.raw.source, indices)
        assert self.padding is not None
        return replaced(self.raw, {each.var: index for each, index in zip(self.padding.iter_vars, indices)})

    def mask(self, half: int) -> Expr:
        """Return the bits to flip: of bytes without sign their highest, of the second half all."""
        flipped = (0x8080 if self.dtype == "uint8" else 0) ^ (0xFFFF if half else 0)
        return tirx.const(_signed(flipped), "int16")

    def _nothing(self, half: int) -> Expr:
        """Return a couple of zero points: the padding."""
        two = (self.zero & 0xFF) * 0x101
        return tirx.const(_signed(two ^ (0xFFFF if half else 0)), "int16")


def _signed(bits: int) -> int:
    return bits - 0x10000 if bits & 0x8000 else bits
