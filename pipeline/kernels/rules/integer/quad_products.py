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
from math import ceil

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IntImm, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.index_grid import Unknown
from ....tir.inlining import inlined
from ....tir.loop_nests import buffer_of, int64, kernel_of, sequence
from ....tir.quads import byte, couple, neighbours, quads
from ....tir.workspace import held_bytes
from ...weights.repack_quads import RepackQuads
from ..line_buffer import loop_of
from ..rule import RuleResult
from .quad_form import CHUNK, PLACES
from .quad_lines import QuadLines

_SERIAL, _VECTORIZED = 0, 2
#: lanes of vectors of filters
_LANES = 8


def quad_products(kernel: PrimFunc, repackable: frozenset[int], machine: Machine) -> Iterator[RuleResult]:
    """Yield the schedule of an integer product of weights: a Rule."""
    if machine.compact or not machine.quads:
        return
    with suppress(Unknown):
        found = _Quads(inlined(kernel), repackable, machine)
        made = found.kernel()
        yield RuleResult(made, (found.repack,), workspace=held_bytes(made))


class _Quads(QuadLines):
    """Build the kernel. Raises Unknown for other forms."""

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int], machine: Machine):
        super().__init__(kernel, repackable, machine)
        extents = tuple(map(int, self.weight.source.ty.shape))
        self.repack = RepackQuads(
            self.number, self.filters, self.width, channels=self.inner, chunk=self.chunk, zero=self.zero, extents=extents
        )
        self.packed = buffer_of(self.weight.source.name, self.repack.shape(extents), "int8")
        self.acc = buffer_of("acc", [self.rows, self.width], "int32")
        self.values = buffer_of("values", [2, ceil(self.rows / PLACES) * PLACES, self.steps], "int16")
        self.word = buffer_of("word", [_LANES], "int32")

    def kernel(self) -> PrimFunc:
        outer = self.outer()
        own = [self.acc, self.values]
        if self.direct:
            block = Var("block", "int64")
            stmt: Stmt = For(block, int64(0), self._blocks, _SERIAL, self._tiled(outer, int64(0), block, self.axes[self.x]))
        else:
            own.append(self.lines)
            stmt = sequence(self._bands(outer))
        if self.rows_last and self.bytes and self.rows % PLACES == 0:
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
        low, high = self.columns()
        inner = [n for n in range(whole) if low <= n * size * self.stride and n * size * self.stride + self.span(size) <= high]
        first, end = (inner[0], inner[-1] + 1) if inner else (whole, whole)
        if first + whole - end > 2:
            raise Unknown("the padding is wider than a band")
        alone = [(n * size, size) for n in (*range(first), *range(end, whole))] + ([(whole * size, rest)] if rest else [])
        parts = [self._band(outer, int64(start), self.inside(start, low, high, count), count) for start, count in alone]
        if first < end:
            band = Var("band", "int64")
            inside = 0, self.span(size)
            parts.append(loop_of(band, end - first, self._band(outer, (band + first) * size, inside, size)))
        return parts

    def _band(self, outer: dict[Var, Expr], start: Expr, inside: tuple[int, int], count: int) -> Stmt:
        """Fill the lines of a band of `count` places from `start` on, then compute its tiles."""
        block = Var("block", "int64")
        computed = For(block, int64(0), self._blocks, _SERIAL, self._tiled(outer, start, block, count))
        return sequence([*self.filled(outer, start, inside, self.span(count)), computed])

    def _tiled(self, outer: dict[Var, Expr], start: Expr, block: Expr, count: int) -> Stmt:
        whole, rest = divmod(count, self.rows)
        tile = Var("tile", "int64")
        parts = [loop_of(tile, whole, self._tile(outer, start, tile * self.rows, block, self.rows))] if whole else []
        if rest:
            parts.append(self._tile(outer, start, int64(whole * self.rows), block, rest))
        return sequence(parts)

    def _tile(self, outer: dict[Var, Expr], start: Expr, offset: Expr, block: Expr, rows: int) -> Stmt:
        groups = range(0, self.width, _LANES)
        loops = {var: Var(var.name, "int64") for var in self.others}
        number = Var("quad", "int64")
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
            at = (linear * self.quads + (number * self.steps + step)) * (4 * self.width) + first * 4

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
            body += [product(tap, step, row, first) for step in range(self.steps) for first in groups for row in range(rows)]
        inner = sequence(body)
        for var, loop in reversed({self.c: number, **loops}.items()):
            extent = self.quads // self.steps if var.same_as(self.c) else self.axes[var]
            inner = For(loop, int64(0), int64(extent), _SERIAL, inner)
        zeros = [zero(row, first) for row in range(rows) for first in groups]
        return sequence([*zeros, inner, *self._stored(outer, start + offset, block, rows)])

    def _loaded(
        self, outer: dict[Var, Expr], loops: dict[Var, Var], number: Expr, start: Expr, offset: Expr, tap: int, rows: int
    ) -> list[Stmt]:
        """Read the values of a tile for one step of its sums, or four."""
        parts: list[Stmt] = []
        for half in (0, 1):
            if self.dense:
                for row in range(rows):
                    lane = Var("lane", "int64")
                    channel = number * CHUNK + half * (CHUNK // 2) + lane * 2
                    at = [self.byte_at(outer, loops, channel + n, start + offset + row) for n in (0, 1)]
                    store = BufferStore(self.values, neighbours(*at) ^ self.mask(half), [int64(half), int64(row), lane])
                    parts.append(For(lane, int64(0), int64(CHUNK // 4), _VECTORIZED, store))
                continue

            def value(row: Expr, half: int = half) -> Expr:
                if not self.direct:
                    phase, place = tap * self.step % self.stride, tap * self.step // self.stride
                    return tirx.BufferLoad(self.lines, [number, *loops.values(), int64(half), int64(phase), offset + (row + place)])
                at = [self.byte_at(outer, loops, number * 4 + 2 * half + n, start + offset + row) for n in (0, 1)]
                return couple(at[0], at[1]) ^ self.mask(half)

            if self.direct and rows % PLACES:
                parts += [BufferStore(self.values, value(int64(row)), [int64(half), int64(row), int64(0)]) for row in range(rows)]
                continue
            for row in range(0, rows, PLACES):
                lane = Var("lane", "int64")
                store = BufferStore(self.values, value(lane + row), [int64(half), lane + row, int64(0)])
                parts.append(For(lane, int64(0), int64(PLACES), _VECTORIZED, store))
        return parts

    def _stored(self, outer: dict[Var, Expr], start: Expr, block: Expr, rows: int) -> list[Stmt]:
        """Store the epilogue of a tile: four neighbouring places at once where the result has them side by side."""
        at_once = self.rows_last and self.bytes and rows % PLACES == 0

        def result(row: Expr, of_row: int, lane: Expr, filter_: Expr) -> tuple[Var, Expr, list[Expr]]:
            own = {**outer, self.x: start + row, self.f: block * self.width + filter_}
            return self.result(tirx.BufferLoad(self.acc, [int64(of_row), lane]), own)

        parts: list[Stmt] = []
        for row in range(0, rows, PLACES if at_once else 1):
            for first in range(0, self.width, _LANES):
                lane = Var("lane", "int64")
                if not at_once:
                    store = BufferStore(*result(int64(row), row, lane + first, lane + first))
                    parts.append(For(lane, int64(0), int64(_LANES), _VECTORIZED, store))
                    continue
                four = [result(int64(row + n), row + n, lane + first, lane + first)[1] for n in range(PLACES)]
                word = BufferStore(self.word, couple(couple(four[0], four[1]), couple(four[2], four[3])), [lane])
                parts.append(For(lane, int64(0), int64(_LANES), _VECTORIZED, word))
                for filter_ in range(_LANES):
                    place = Var("place", "int64")
                    buffer, value, indices = result(place + row, row, int64(0), int64(first + filter_))
                    taken = byte(tirx.BufferLoad(self.word, [int64(filter_)]), place.astype("int32"), str(value.ty.dtype))
                    parts.append(For(place, int64(0), int64(PLACES), _VECTORIZED, BufferStore(buffer, taken, indices)))
        return parts
