"""Schedule integer products of weights by four: products of bytes in int16, pairs of them in int32.

    for … rows of the result, bands of places along them:
        lines[q, i, half, place] = channels 4 q (+ 2) and the next, two bytes, or the padding        if there is any
        for blocks of filters, tiles of places:
            acc[places, filters] = start of the filters
            for q, i (and j unrolled):
                acc[p, 0:8] += quads(weight[q, i, j, 0:8], lines[q, i, p · stride + j])
            result[tile] = epilogue(acc)

Values are as they are in memory, or the padding: their zero point. Weights are repacked with what it adds up to. The
second half of four values is complemented, and subtracted: so two products fit into int16. Sums of integers are exact
in any order. Without padding, strides and taps, tiles read the data: there is no workspace then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from math import ceil, prod

import numpy as np
from tvm import sym, tirx
from tvm.ir import Expr, TensorLoad, Var
from tvm.tirx import BufferStore, For, IfThenElse, IntImm, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import conjuncts, is_choice, replaced, uses
from ....tir.index_grid import Unknown, holds_along
from ....tir.inlining import inlined
from ....tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ....tir.quads import byte, couple, neighbours, quads
from ....tir.workspace import held_bytes
from ...weights.repack_quads import RepackQuads
from ..line_buffer import loop_of
from ..rule import RuleResult
from ..tile_size import divisors
from .integer_sum import IntegerSum

_SERIAL, _VECTORIZED = 0, 2
#: widths of a block of filters, places of a tile; lanes of vectors of filters, and of places
_WIDTHS, _ROWS, _LANES, _PLACES = (32, 24, 16, 8), (8, 4, 3, 2, 1), 8, 4
#: bytes of the line buffer: preferred, at most
_LINES, _MOST_LINES = 2048, 3072
#: channels that are neighbours in memory are read by so many
_CHUNK = 16


def quad_products(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.compact or not machine.quads:
        return
    with suppress(Unknown):
        found = _Quads(inlined(kernel), repackable, machine)
        made = found.kernel()
        yield RuleResult(made, (found.repack,), workspace=held_bytes(made))


class _Quads(IntegerSum):
    """Build the kernel; `c` is the summed axis in fours. Raises Unknown for other forms."""

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        super().__init__(kernel, repackable)
        self._read_data()
        self.c, self.inner = self._channels()
        self.others = [var for var in self.summed if not var.same_as(self.tap) and not var.same_as(self.c)]
        at = next(place for place, index in enumerate(self.indices) if self.c.same_as(index))
        extents = [int(extent) for extent in self.data.source.ty.shape]
        last = max(place for place, extent in enumerate(extents) if extent > 1)
        self.dense = at == last and self.axes[self.c] % _CHUNK == 0
        if not self.dense and self.along != last:
            raise Unknown("neither channels nor places are neighbours")
        self.direct = self.border is None and self.tap is None and self.stride == 1 and self.axes[self.c] % 4 == 0
        if self.dense and not self.direct:
            raise Unknown("channels last, with taps or padding")
        self.chunk = _CHUNK if self.dense else 4
        self.quads = ceil(self.axes[self.c] / 4)
        self.rows_last, self.bytes = self._stores()
        self.width, self.rows = self._tiles(machine.registers * machine.lanes // (16 if self.dense else 8))
        extents = tuple(map(int, self.weight.source.ty.shape))
        self.repack = RepackQuads(self.number, self.filters, self.width, self.inner, self.chunk, self.zero, extents)
        self.packed = buffer_of(self.weight.source.name, self.repack.shape(extents), "int8")
        self.acc = buffer_of("acc", [self.rows, self.width], "int32")
        steps = _CHUNK // 4 if self.dense else 1
        self.values = buffer_of("values", [2, ceil(self.rows / _PLACES) * _PLACES, steps], "int16")
        self.word = buffer_of("word", [_LANES], "int32")
        self.tiles = self.axes[self.x] // self.rows
        if not self.direct:
            fitting = [n for n in divisors(self.tiles, self.tiles) if self._bytes(n * self.rows) <= _LINES]
            self.tiles = max(fitting, default=1)
            if self._bytes(self.tiles * self.rows) > _MOST_LINES:
                raise Unknown("a tile's lines are too long")
            self.lines = buffer_of("lines", self._line_extents(self.tiles * self.rows), "int16")

    def _read_data(self) -> None:
        """Read the data's load `raw`, its zero point `zero` in int8, and the `border` of its padding, a choice."""
        value, self.border = self.value, None
        padding = self.padding
        if padding is not None and self.data.source.same_as(padding.body.buffer):
            axes = [axis.var for axis in padding.iter_vars]
            plain = all(one.same_as(other) for one, other in zip(axes, padding.body.indices)) and len(axes) == len(self.indices)
            if not plain or not is_choice(padding.body.value) or not self.value.same_as(self.data):
                raise Unknown("the padding is no select at its own axes")
            self.border, value, nothing = padding.body.value.args
            if not isinstance(nothing, IntImm) or int(nothing):
                raise Unknown("the padding is not zero")
        self.zero, value = _less(value)
        if not isinstance(value, tirx.Cast) or not isinstance(value.value, TensorLoad):
            raise Unknown("the data is no number less its zero point")
        self.raw = value.value
        self.dtype = str(self.raw.ty.dtype)
        if self.dtype not in ("int8", "uint8") or str(self.weight.source.ty.dtype) != "int8":
            raise Unknown("the factors are no bytes")
        self.zero -= 128 if self.dtype == "uint8" else 0

    def _channels(self) -> tuple[Var, int]:
        """Find the summed axis to take by four, and the weight's dimension it moves along."""
        for index in self.weight.indices:
            if not isinstance(index, IntImm) and index not in self.axes:
                raise Unknown("the weight is not indexed by axes")
        fit = [var for var in self.pairable() if self.axes[var] > 2]
        if not fit:
            raise Unknown("no summed axis in fours")
        c = max(fit, key=lambda var: self.axes[var])
        return c, next(place for place, index in enumerate(self.weight.indices) if c.same_as(index))

    def _stores(self) -> tuple[bool, bool]:
        """Tell whether neighbouring places are neighbours in the result, and whether it holds bytes."""
        x, f = Var("x", "int64"), Var("f", "int64")
        own = {var: int64(0) for var in self.axes} | {self.x: x, self.f: f}
        _, value, indices = self.result(tirx.const(0, "int32"), own)
        linear = sym.detect_linear_equation(indices[-1], [x])
        along = linear and isinstance(linear[0], IntImm) and int(linear[0]) == 1 and not uses(indices[-1], f)
        return bool(along), str(value.ty.dtype) in ("int8", "uint8")

    def _tiles(self, registers: int) -> tuple[int, int]:
        """Choose filters and places of a tile with the fewest instructions; sums take half of the registers at most."""
        places, terms = self.axes[self.x], self.quads * prod(self.axes[var] for var in self.summed if not var.same_as(self.c))

        def cost(width: int, rows: int) -> float:
            if self.dense:
                read = 3 * rows / 4
            elif self.direct:
                read = 7 * rows / 4 if rows % _PLACES == 0 else 8 * rows
            else:
                read = 2 * ceil(rows / _PLACES)
            stored = 3 * rows * width if self.rows_last and (rows % _PLACES or not self.bytes) else rows * width
            return terms * (rows * width * 3 / 4 + width / 8 + read + 2 * rows + 3) + 2 * stored

        def total(width: int, rows: int) -> float:
            whole, rest = divmod(places, rows)
            return (whole * cost(width, rows) + (cost(width, rest) if rest else 0)) / width

        found = [
            (total(width, rows), width, rows)
            for width in _WIDTHS if self.axes[self.f] % width == 0
            for rows in _ROWS if rows <= places and rows * width // 4 <= registers
        ]  # fmt: skip
        if not found:
            raise Unknown("the filters are no whole vectors")
        return min(found)[1:]

    def _line_extents(self, places: int) -> list[int]:
        columns = ceil(self.span(ceil(places / _PLACES) * _PLACES) / self.stride)
        return [self.quads, *(self.axes[var] for var in self.others), 2, self.stride, columns]

    def _bytes(self, places: int) -> int:
        return 2 * prod(self._line_extents(places))

    def kernel(self) -> PrimFunc:
        outer = self.outer()
        own = [self.acc, self.values]
        if self.direct:
            block = Var("block", "int64")
            stmt: Stmt = For(block, int64(0), self._blocks, _SERIAL, self._tiled(outer, int64(0), block, self.axes[self.x]))
        else:
            own.append(self.lines)
            stmt = sequence(self._bands(outer))
        if self.rows_last and self.bytes and self.rows % _PLACES == 0:
            own.append(self.word)
        for var, loop in reversed(outer.items()):
            stmt = stmt if isinstance(loop, IntImm) else For(loop, int64(0), int64(self.axes[var]), _SERIAL, stmt)
        params = [self.packed if n == self.number else each for n, each in enumerate(self.original.params)]
        return kernel_of(params, [stmt], own, self.original.attrs)

    @property
    def _blocks(self) -> Expr:
        return int64(self.axes[self.f] // self.width)

    def _bands(self, outer: dict[Var, Expr]) -> list[Stmt]:
        """Build the bands of places: those whose columns are padded by themselves, the others in a loop."""
        size = self.tiles * self.rows
        whole, rest = divmod(self.axes[self.x], size)
        low, high = self._columns()
        inner = [n for n in range(whole) if low <= n * size * self.stride and n * size * self.stride + self.span(size) <= high]
        first, end = (inner[0], inner[-1] + 1) if inner else (whole, whole)
        if first + whole - end > 2:
            raise Unknown("the padding is wider than a band")
        alone = [(n * size, size) for n in (*range(first), *range(end, whole))] + ([(whole * size, rest)] if rest else [])
        parts = [self._band(outer, int64(start), self._inside(start, low, high, count), count) for start, count in alone]
        if first < end:
            band = Var("band", "int64")
            inside = 0, self.span(size)
            parts.append(loop_of(band, end - first, self._band(outer, (band + first) * size, inside, size)))
        return parts

    def _columns(self) -> tuple[int, int]:
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

    def _inside(self, start: int, low: int, high: int, count: int) -> tuple[int, int]:
        """Return the columns of a band that are not padding."""
        span, first = self.span(count), start * self.stride
        return min(max(low - first, 0), span), max(min(high - first, span), 0)

    def _band(self, outer: dict[Var, Expr], start: Expr, inside: tuple[int, int], count: int) -> Stmt:
        """Fill the lines of a band of `count` places from `start` on, then compute its tiles."""
        block = Var("block", "int64")
        computed = For(block, int64(0), self._blocks, _SERIAL, self._tiled(outer, start, block, count))
        return sequence([*self._filled(outer, start, inside, self.span(count)), computed])

    def _tiled(self, outer: dict[Var, Expr], start: Expr, block: Expr, count: int) -> Stmt:
        whole, rest = divmod(count, self.rows)
        tile = Var("tile", "int64")
        parts = [loop_of(tile, whole, self._tile(outer, start, tile * self.rows, block, self.rows))] if whole else []
        if rest:
            parts.append(self._tile(outer, start, int64(whole * self.rows), block, rest))
        return sequence(parts)

    def _filled(self, outer: dict[Var, Expr], start: Expr, inside: tuple[int, int], span: int) -> list[Stmt]:
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
                return self._byte(outer, loops, quad * 4 + number, start * self.stride + (place * self.stride + phase))

            return stored(half, phase, place, couple(one(2 * half), one(2 * half + 1)) ^ self._mask(half))

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

    def _byte(self, outer: dict[Var, Expr], loops: dict[Var, Var], channel: Expr, column: Expr) -> Expr:
        """Load an element of the data as it is in memory."""
        indices = self._at(outer, loops, channel, column)
        if self.border is None:
            return tirx.BufferLoad(self.raw.source, indices)
        assert self.padding is not None
        return replaced(self.raw, {each.var: index for each, index in zip(self.padding.iter_vars, indices)})

    def _mask(self, half: int) -> Expr:
        """Return the bits to flip: of bytes without sign their highest, of the second half all."""
        flipped = (0x8080 if self.dtype == "uint8" else 0) ^ (0xFFFF if half else 0)
        return tirx.const(_signed(flipped), "int16")

    def _nothing(self, half: int) -> Expr:
        """Return a couple of zero points: the padding."""
        two = (self.zero & 0xFF) * 0x101
        return tirx.const(_signed(two ^ (0xFFFF if half else 0)), "int16")

    def _tile(self, outer: dict[Var, Expr], start: Expr, offset: Expr, block: Expr, rows: int) -> Stmt:
        groups = range(0, self.width, _LANES)
        loops = {var: Var(var.name, "int64") for var in self.others}
        number = Var("quad", "int64")
        steps = _CHUNK // 4 if self.dense else 1
        taps = self.axes[self.tap] if self.tap is not None else 1

        def vector(made: Callable[[Expr], Stmt], lanes: int = _LANES) -> Stmt:
            lane = Var("lane", "int64")
            return For(lane, int64(0), int64(lanes), _VECTORIZED, made(lane))

        def zero(row: int, first: int) -> Stmt:
            def made(lane: Expr) -> Stmt:
                at = [tirx.BufferLoad(self.packed, [block, (lane + first) * 4 + (self.repack.starts + n)]) for n in range(4)]
                return BufferStore(self.acc, neighbours(*at), [int64(row), lane + first])

            return vector(made)

        def product(tap: int, step: int, row: int, first: int) -> Stmt:
            values = {**outer, **loops, **({} if self.tap is None else {self.tap: int64(tap)})}
            linear: Expr = int64(0)
            for place, index in enumerate(self.weight.indices):
                if place not in (self.filters, self.inner):
                    linear = linear * self.repack.extents[place] + replaced(index, values)
            at = (linear * self.quads + (number * steps + step)) * (4 * self.width) + first * 4

            def made(lane: Expr) -> Stmt:
                halves = [
                    neighbours(*(tirx.BufferLoad(self.packed, [block, lane * 2 + (at + 16 * half + n)]) for n in (0, 1)))
                    for half in (0, 1)
                ]
                x = [tirx.BufferLoad(self.values, [int64(half), int64(row), int64(step)]) for half in (0, 1)]
                sum_ = tirx.BufferLoad(self.acc, [int64(row), lane + first])
                return BufferStore(self.acc, quads(sum_, (halves[0], halves[1]), (x[0], x[1])), [int64(row), lane + first])

            return vector(made)

        body: list[Stmt] = []
        for tap in range(taps):
            body += self._loaded(outer, loops, number, start, offset, tap, rows)
            body += [product(tap, step, row, first) for step in range(steps) for first in groups for row in range(rows)]
        inner = sequence(body)
        for var, loop in reversed({self.c: number, **loops}.items()):
            extent = self.quads // steps if var.same_as(self.c) else self.axes[var]
            inner = For(loop, int64(0), int64(extent), _SERIAL, inner)
        zeros = [zero(row, first) for row in range(rows) for first in groups]
        return sequence([*zeros, inner, *self._stored(outer, start + offset, block, rows)])

    def _loaded(
        self, outer: dict[Var, Expr], loops: dict[Var, Var], number: Expr, start: Expr, offset: Expr, tap: int, rows: int
    ) -> list[Stmt]:
        """Read the values of a tile for one step of its sums, or four where channels are neighbours."""
        parts: list[Stmt] = []
        for half in (0, 1):
            if self.dense:
                for row in range(rows):
                    lane = Var("lane", "int64")
                    channel = number * _CHUNK + half * (_CHUNK // 2) + lane * 2
                    at = [self._byte(outer, loops, channel + n, start + offset + row) for n in (0, 1)]
                    store = BufferStore(self.values, neighbours(*at) ^ self._mask(half), [int64(half), int64(row), lane])
                    parts.append(For(lane, int64(0), int64(_CHUNK // 4), _VECTORIZED, store))
                continue

            def value(row: Expr) -> Expr:
                if not self.direct:
                    phase, place = tap * self.step % self.stride, tap * self.step // self.stride
                    return tirx.BufferLoad(self.lines, [number, *loops.values(), int64(half), int64(phase), offset + (row + place)])
                at = [self._byte(outer, loops, number * 4 + 2 * half + n, start + offset + row) for n in (0, 1)]
                return couple(at[0], at[1]) ^ self._mask(half)

            if self.direct and rows % _PLACES:
                parts += [BufferStore(self.values, value(int64(row)), [int64(half), int64(row), int64(0)]) for row in range(rows)]
                continue
            for row in range(0, rows, _PLACES):
                lane = Var("lane", "int64")
                store = BufferStore(self.values, value(lane + row), [int64(half), lane + row, int64(0)])
                parts.append(For(lane, int64(0), int64(_PLACES), _VECTORIZED, store))
        return parts

    def _stored(self, outer: dict[Var, Expr], start: Expr, block: Expr, rows: int) -> list[Stmt]:
        """Store the epilogue of a tile: four neighbouring places at once where the result has them side by side."""
        at_once = self.rows_last and self.bytes and rows % _PLACES == 0

        def result(row: Expr, of_row: int, lane: Expr, filter_: Expr) -> tuple[Var, Expr, list[Expr]]:
            own = {**outer, self.x: start + row, self.f: block * self.width + filter_}
            return self.result(tirx.BufferLoad(self.acc, [int64(of_row), lane]), own)

        parts: list[Stmt] = []
        for row in range(0, rows, _PLACES if at_once else 1):
            for first in range(0, self.width, _LANES):
                lane = Var("lane", "int64")
                if not at_once:
                    store = BufferStore(*result(int64(row), row, lane + first, lane + first))
                    parts.append(For(lane, int64(0), int64(_LANES), _VECTORIZED, store))
                    continue
                four = [result(int64(row + n), row + n, lane + first, lane + first)[1] for n in range(_PLACES)]
                word = BufferStore(self.word, couple(couple(four[0], four[1]), couple(four[2], four[3])), [lane])
                parts.append(For(lane, int64(0), int64(_LANES), _VECTORIZED, word))
                for filter_ in range(_LANES):
                    place = Var("place", "int64")
                    buffer, value, indices = result(place + row, row, int64(0), int64(first + filter_))
                    taken = byte(tirx.BufferLoad(self.word, [int64(filter_)]), place.astype("int32"), str(value.ty.dtype))
                    parts.append(For(place, int64(0), int64(_PLACES), _VECTORIZED, BufferStore(buffer, taken, indices)))
        return parts


def _less(value: Expr) -> tuple[int, Expr]:
    """Return the number taken from an expression, and the expression."""
    if isinstance(value, tirx.Sub) and isinstance(value.b, IntImm):
        return int(value.b), value.a
    if isinstance(value, tirx.Add) and isinstance(value.b, IntImm):
        return -int(value.b), value.a
    return 0, value


def _signed(bits: int) -> int:
    return bits - 0x10000 if bits & 0x8000 else bits
