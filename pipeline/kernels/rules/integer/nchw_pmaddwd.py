"""Schedule integer products of weights by pairs: numbers widened in a line buffer for all filters, sums in registers.

    for … rows of the result, bands of places along them:
        lines[c, i, place] = x of channels 2 c and 2 c + 1 less its zero point, two int16, or the padding
        for blocks of filters, tiles of places:
            acc[places, filters] = 0
            for c, i (and j unrolled):
                acc[p, 0:8] += pairs(weight[2 c, i, j, 0:8], weight[2 c + 1, i, j, 0:8], lines[c, i, p · stride + j])
            result[tile] = epilogue(acc)

Weights are repacked, filters last. Sums of integers are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, PrimFunc, Stmt

from ....support.divisors import divisors
from ....targets import Machine
from ....tir.expressions import replaced, with_loads
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.quads import couple
from ...weights.repack import Repack
from ..line_buffer import loop_of
from .integer_sum import IntegerSum
from .micro_kernel import MicroKernel
from .runs.nhwc_pmaddwd import NhwcPmaddwd
from .sum_builder import Axes, SumBuilder

_SERIAL = 0
#: candidate widths of a block of filters; lanes of its vectors
_WIDTHS, _LANES = (16, 8), 8
#: registers for other values than sums
_OPERANDS = 4
#: bytes of the line buffer at most
_LINES = 3072
#: most tiles of a band
_MOST_TILES = 64


class NchwPmaddwd(NhwcPmaddwd):
    """Build the kernel; `c` is the longest summed axis in pairs. Raises NoMatch for other forms."""

    anywhere = False

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        SumBuilder.__init__(self, form, machine, row)
        if self.axes[self.x] == 1:
            raise NoMatch("a single place: no line to widen")
        self.width = next((width for width in _WIDTHS if self.axes[self.f] % width == 0), 0)
        if not self.width:
            raise NoMatch("the filters are not whole vectors")
        self.pack(Repack(self.number, self.filters, self.width))
        if self.padding is not None and not all(
            index.same_as(axis.var) for index, axis in zip(self.padding.body.indices, self.padding.iter_vars)
        ):
            raise NoMatch("the padding is not at its own axes")
        even = [var for var in self.pairable() if self.axes[var] % 2 == 0]
        if not even:
            raise NoMatch("no summed axis in pairs")
        self.c = max(even, key=lambda var: self.axes[var])
        self.others = [self.c, *(var for var in self.summed if not var.same_as(self.tap) and not var.same_as(self.c))]
        most = max(1, (machine.registers_of(_LANES) - _OPERANDS) * _LANES // self.width)
        self.lanes, self.high = _LANES, self._rows(most)
        self.tiles = max(
            n for n in divisors(self.axes[self.x] // self.high, _MOST_TILES) if self._bytes(n * self.high) <= _LINES
        )
        span = self.span(self.tiles * self.high)
        #: extents of loops over channels in pairs
        self.halved = {self.c: self.axes[self.c] // 2}
        extents = [self.axes[self.c] // 2, *(self.axes[var] for var in self.others[1:])]
        self.lines = buffer_of("lines", [*extents, span], "int32")
        self.acc = buffer_of("acc", [self.high, self.width], "int32")

    def kernel(self) -> PrimFunc:
        """Build bands of tiles."""
        outer, size, band = self.outer(), self.tiles * self.high, Var("band", "int64")
        count = self.axes[self.x] // size
        parts = [loop_of(band, count, self._band(outer, band * size, size, (0, 0)))]
        if rest := self.axes[self.x] - count * size:
            parts.append(self._band(outer, int64(count * size), rest, (0, 0)))
        return self.in_rows(sequence(parts), outer, self.buffers())

    def _rows(self, most: int) -> int:
        """Return the places of a tile: at most `most`, as many in each tile, with lines that fit."""
        extent = self.axes[self.x]
        for rows in range(min(most, extent), 0, -1):
            even = -(-extent // -(-extent // rows))
            if self._bytes(even) <= _LINES:
                return even
        raise NoMatch("a tile's lines are too long")

    def _bytes(self, places: int) -> int:
        return 2 * prod(self.axes[var] for var in self.others) * self.span(places)

    def _band(self, outer: dict[Var, Expr], start: Expr, count: int, inside: tuple[int, int]) -> Stmt:
        block, tile, rows = Var("block", "int64"), Var("tile", "int64"), min(self.high, count)
        tiles = loop_of(tile, count // rows, self._tile(outer, start, tile * rows, block, rows))
        blocks = For(block, int64(0), int64(self.axes[self.f] // self.width), _SERIAL, tiles)
        return sequence([*self._filled(outer, start, self.span(count), inside), blocks])

    def _filled(self, outer: dict[Var, Expr], start: Expr, span: int, _inside: tuple[int, int]) -> list[Stmt]:
        place, loops = Var("place", "int64"), self.loops_over(self.others)
        low, high = (self._element(self._channel({**outer, **loops}, number), start, place) for number in (0, 1))
        pair = tirx.bitwise_or(
            tirx.bitwise_and(low.astype("int32"), tirx.const(0xFFFF, "int32")),
            tirx.shift_left(high.astype("int32"), tirx.const(16, "int32")),
        )
        stmt: Stmt = BufferStore(self.lines, pair, [*loops.values(), place])
        return [self.nest(loops, For(place, int64(0), int64(span), _SERIAL, stmt), own=self.halved)]

    def _channel(self, axes: Axes, number: int) -> dict[Var, Expr]:
        """Return the axes of channel 2 c + `number`."""
        return {**axes, self.c: axes[self.c] * 2 + number}

    def _element(self, values: dict[Var, Expr], start: Expr, place: Expr) -> Expr:
        """Return the data of a place of a band less its zero point, in int16, or the padding."""
        indices = self.at(values, start * self.stride)
        indices[self.along] = indices[self.along] + place
        if self.padding is not None:
            return replaced(self.padding.body.value, self.padding_axes(indices))
        return replaced(with_loads(self.value, self.data.source, tirx.BufferLoad(self.data.source, indices)), values)

    def _together(self) -> int:
        return self.lanes

    def in_parts(self, build: Callable[[Expr], Stmt], _outer: dict[Var, Expr], _start: Expr, _rows: int) -> Stmt:
        return sequence([build(int64(tap)) for tap in range(self.taps)])

    def group(self, values: dict[Var, Expr], _start: Expr, _row: int, at: Expr, group: Expr) -> Expr:
        return tirx.BufferLoad(self.lines, [*(values[var] for var in self.others), at + group * self.step])

    def weights_at(self, block: Expr, axes: Axes, group: Expr, lane: Expr) -> Expr:
        weights = []
        for number in (0, 1):
            own = {**self._channel(axes, number), **self.at_tap(group)}
            rest = [replaced(each, own) for n, each in enumerate(self.weight.indices) if n != self.filters]
            weights.append(tirx.BufferLoad(self.packed, [block, *rest, lane]))
        return couple(*weights)
