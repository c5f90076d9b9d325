"""Schedule integer products of weights by pairs along runs: values that lie side by side in memory, widened once.

    for … rows of the result, bands of places along them:
        lines[i, column · C + c] = x less its zero point, int16, or the padding
        for blocks of filters, tiles of places:
            acc[places, filters] = 0
            for i, pairs r of a run (taps along the line, and the channels of each):
                acc[p, 0:8] += pairs(weight[i, r, 0:8], lines[i, p · stride · C + 2 r], lines[… + 1])
            result[tile] = epilogue(acc)

A run of taps and channels may be odd: its last weight is 0 then. Sums of integers are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import prod

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, PrimFunc, Stmt

from .....support.divisors import divisors
from .....targets import Machine
from .....tir.expressions import dtype_bytes, replaced, uses
from .....tir.index_grid import NoMatch
from .....tir.loop_nests import buffer_of, int64, sequence
from ....weights.repack_sums import RepackSums
from ...line_buffer import loop_of
from ..integer_sum import IntegerSum
from ..loops import guarded, in_tiles, in_vectors, load_neighbours, over_tile
from ..micro_kernel import MicroKernel
from ..sum_builder import Axes, SumBuilder

_SERIAL = 0
#: candidate vectors of a block of filters, and most sums of a tile: more hide no latency, and take more code
_VECTORS, _SUMS = (4, 3, 2, 1), 16
#: lanes of results that are narrowed to bytes together
_NARROWED = 16
#: weights in an integer at most
_WORD = 4
#: bytes of the line buffer: preferred, at most
_LINES, _MOST_LINES = 1536, 3072
#: bytes of the line of a single place at most: it is widened for one row of sums, and tensors of such models are small
ALONE = 192
#: most tiles of a band
_MOST_TILES = 64


class NhwcPmaddwd(SumBuilder):
    """Build the kernel; `c` is the axis of channels, if they are side by side. Raises NoMatch for other forms.

    `run` values are neighbours in memory, of `channels` and taps; `grouped` of them are multiplied at once.
    """

    anywhere = True
    #: most groups of an unrolled step, and the kind of loops around the steps
    unrolled, kind = 2, _SERIAL
    #: whether data is read from memory
    in_place = False
    #: dtype of bytes, that of lines unless the row has one
    dtype = ""
    #: extents of loops over halves of axes
    halved: Mapping[Var, int] = {}

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.grouped = row.group
        self.c = self._channels()
        self.channels = 1 if self.c is None else self.axes[self.c]
        in_run = [self.tap] if self.tap is not None and self.step == 1 else []
        in_run += [self.c] if self.c is not None else []
        self.run = prod(self.axes[var] for var in in_run)
        self._check_run()
        self.others = [var for var in self.summed if self.axes[var] > 1 and var not in in_run]
        #: summed axes of the lines, besides the run and a tap with gaps
        self.rows = [var for var in self.others if not var.same_as(self.tap)]
        self.lanes = next((lanes for lanes in (machine.lanes, 8) if self.axes[self.f] % lanes == 0), 0)
        if not self.lanes:
            raise NoMatch("the filters are not whole vectors")
        self.repack = self._repacked(in_run)
        self.high, self.width = self._tile_shape()
        self.repack = self.pack(replace(self._repacked(in_run), width=self.width))
        self.tiles = self._tiles_of_a_band()
        self.lines = buffer_of("lines", self._extents(self.tiles * self.high), self.line_dtype)
        self.acc = buffer_of("acc", [self.high, self.width], "int32")

    @property
    def line_dtype(self) -> str:
        return self.row.values or self.dtype

    def _check_run(self) -> None:
        """Raise NoMatch for a run of one value, or an odd run that another rule takes in pairs."""
        if self.run == 1 or (self.run % 2 and any(self.axes[var] % 2 == 0 for var in self.pairable())):
            raise NoMatch("no run of pairs")

    def _channels(self) -> Var | None:
        """Find the summed axis of values side by side in memory, None if columns are."""
        raw = self.raw()
        places = [place for place, extent in enumerate(raw.source.ty.shape) if int(extent) > 1]
        if not places:
            raise NoMatch("the data are a single value")
        last = raw.indices[places[-1]]
        found = next((var for var in self.pairable() if var.same_as(last)), None)
        if found is None:
            if not uses(last, self.x):
                raise NoMatch("neither channels nor columns are neighbours")
            return None
        if self.axes[self.x] == 1 and self.axes[found] == int(raw.source.ty.shape[places[-1]]):
            return found
        before = raw.indices[places[-2]] if len(places) > 1 else None
        if self.axes[found] != int(raw.source.ty.shape[places[-1]]) or before is None or not uses(before, self.x):
            raise NoMatch("pixels are not neighbours")
        return found

    def _repacked(self, in_run: list[Var]) -> RepackSums:
        """Return the layout of the weight."""
        self.weight_places(var for var in self.summed if self.axes[var] > 1)
        if any(uses(index, var) and not index.same_as(var) for index in self.weight.indices for var in self.axes):
            raise NoMatch("the weight is not indexed by axes")
        run = self.weight_places(var for var in in_run if self.axes[var] > 1)
        order = f"r k/{self.grouped} f k%{self.grouped}"
        return self.sums_repack(self.lanes, order, run, self.grouped, row=min(self.grouped, _WORD))

    def _tile_shape(self) -> tuple[int, int]:
        """Choose places and filters of a tile with the fewest instructions."""
        registers = self.machine.registers_of(self.lanes)
        places, found = self.axes[self.x], []
        longest = ALONE if places == 1 else _MOST_LINES

        def cost(vectors: int, rows: int) -> float:
            return 2 * rows * vectors + 2 * vectors + rows + 1

        for vectors in _VECTORS:
            most = min(min(registers - vectors - self.row.others, _SUMS) // vectors, places)
            most = next((high for high in range(most, 0, -1) if self._bytes(high) <= longest), 0)
            if not most or self.axes[self.f] % (vectors * self.lanes):
                continue
            for high in {most, -(-places // -(-places // most))}:
                found.append((self.row_cost(partial(cost, vectors), high) / vectors, -high, vectors * self.lanes))
        if not found:
            raise NoMatch("a tile's lines are too long")
        _, high, width = min(found)
        return -high, width

    def _tiles_of_a_band(self) -> int:
        return max(
            n
            for n in divisors(self.axes[self.x] // self.high, _MOST_TILES)
            if self._bytes(n * self.high) <= _LINES or n == 1
        )

    def _extents(self, places: int) -> list[int]:
        """Return the extents of the lines for so many places."""
        return [*(self.axes[var] for var in self.rows), self.values_of(self.span(places))]

    def values_of(self, columns: int) -> int:
        return super().values_of(columns) + -self.run % self.grouped

    def _bytes(self, places: int) -> int:
        return 0 if self.in_place else dtype_bytes(self.line_dtype) * prod(self._extents(places))

    def kernel(self) -> PrimFunc:
        """Build bands, each with code of its own if it has padding."""
        outer = self.outer()
        stmt = sequence(self.bands(self.tiles * self.high, partial(self._band, outer)))
        return self.in_rows(stmt, outer, self.buffers())

    def buffers(self) -> list[Var]:
        return [self.acc] if self.in_place else [self.lines, self.acc]

    def _band(self, outer: dict[Var, Expr], start: Expr, count: int, inside: tuple[int, int]) -> Stmt:
        """Fill the lines of a band of `count` places, then compute its tiles."""
        block = Var("block", "int64")
        tiles = in_tiles(count, self.high, lambda at, _, rows: self._tile(outer, start, at, block, rows))
        computed = loop_of(block, self.axes[self.f] // self.width, sequence(tiles))
        return sequence([*self._filled(outer, start, self.span(count), inside), computed])

    def _filled(self, outer: dict[Var, Expr], start: Expr, span: int, inside: tuple[int, int]) -> list[Stmt]:
        """Fill the lines of a band."""
        if self.in_place:
            return []
        rows = self.loops_over(self.rows)
        first, end = (each * self.channels for each in inside)
        whole, lanes = self.values_of(span), self.row.fill_lanes

        def stored(at: Expr, empty: bool = False) -> BufferStore:
            value = self.padding_value() if empty else self.lined({**outer, **rows}, start * self.stride, at)
            return BufferStore(self.lines, value, [*rows.values(), at])

        nothings, filled = partial(stored, empty=True), in_vectors(first, end, lanes, stored)
        edges = [stmt for low, high in ((0, first), (end, whole)) for stmt in in_vectors(low, high, lanes, nothings)]
        body = guarded(self.row_inside({**outer, **rows}), filled, in_vectors(first, end, lanes, nothings))
        return [self.nest(rows, sequence([*edges, body]))]

    def padding_value(self) -> Expr:
        """Return the padding as lines hold it."""
        return tirx.const(0, "int16")

    def lined(self, values: Axes, column: Expr, at: Expr) -> Expr:
        """Return the value `at` so many from a column, as lines hold it."""
        return self.element(*self.on_line(values, column, at))

    def _tile(self, outer: dict[Var, Expr], start: Expr, offset: Expr, block: Expr, rows: int) -> Stmt:
        loops = self.loops_over(self.others)

        each = partial(over_tile, rows, self.width)
        axes = {**self.units, **outer, **loops}
        gap = loops[self.tap] * self.step if self.tap is not None and self.tap in loops else int64(0)

        def product(group: Expr, row: int, lane: Expr) -> Stmt:
            first = ((offset + row) * self.stride + gap) * self.channels
            values = self.group({**outer, **loops}, start, row, first, group)
            sum_ = tirx.BufferLoad(self.acc, [int64(row), lane])
            total = self.added(sum_, self.weights_at(block, axes, group, lane), values)
            return BufferStore(self.acc, total, [int64(row), lane])

        moved, sums = self._moved_sums()

        def stored(row: int, lane: Expr) -> Stmt:
            own = {**outer, self.x: start + offset + row, self.f: block * self.width + lane}
            return BufferStore(*self.result(tirx.BufferLoad(sums, [int64(row), lane]), own))

        zeros = each(self.lanes, lambda row, lane: BufferStore(self.acc, self.start(block, lane), [int64(row), lane]))
        body = self.in_parts(
            lambda group: sequence(each(self.lanes, partial(product, group))), outer, start + offset, rows
        )
        return sequence(
            [*zeros, self.nest(loops, body, self.kind, self.halved), *moved, *each(self._together(), stored)]
        )

    def _moved_sums(self) -> tuple[list[Stmt], Var]:
        """Return the statements that move the sums of a tile, if any, and the buffer of results."""
        return [], self.acc

    def _together(self) -> int:
        """Return the lanes of results: they are narrowed by whole vectors of bytes."""
        return self.lanes if self.width % _NARROWED else max(self.lanes, _NARROWED)

    def in_parts(self, build: Callable[[Expr], Stmt], _outer: dict[Var, Expr], _start: Expr, _rows: int) -> Stmt:
        """Build the sum along a run, from the number of a group of values."""
        return self.in_steps(build, self.repack.steps)

    def in_steps(self, build: Callable[[Expr], Stmt], steps: int) -> Stmt:
        """Loop over `steps` groups of values, unrolled by a factor that divides them."""
        step = Var("step", "int64")
        unrolled = max(n for n in range(1, self.unrolled + 1) if steps % n == 0)
        body = sequence([build(step * unrolled + number) for number in range(unrolled)])
        return loop_of(step, steps // unrolled, body)

    def start(self, _block: Expr, _lane: Expr) -> Expr:
        """Return the first term of the sum of a filter."""
        return tirx.const(0, "int32")

    def group(self, values: dict[Var, Expr], _start: Expr, _row: int, at: Expr, group: Expr) -> Expr:
        """Load a group of values side by side. `at` is the first value of their window in the lines."""
        return load_neighbours(self.lines, [values[var] for var in self.rows], at, 2, group * 2)

    def row_of(self, axes: Axes, group: Expr) -> Expr:
        """Return the row of a block that holds the weights of a group."""
        weights = [replaced(index, axes) for index in self.weight.indices]
        return (int64(0) + self.repack.linear(weights, self.repack.rest)) * self.repack.steps + group

    def weights_at(self, block: Expr, axes: Axes, group: Expr, lane: Expr) -> Expr:
        """Load the weights of a group, as one integer. Raises ValueError for a row whose groups are larger."""
        if self.grouped > _WORD:
            raise ValueError(f"{self.row.name}: {self.grouped} weights are no integer; give the row another builder.")
        return load_neighbours(self.packed, [block, self.row_of(axes, group)], lane * self.grouped, self.grouped)

    def added(self, sum_: Expr, weights: Expr, values: Expr) -> Expr:
        """Return the sum with the products of a group."""
        assert self.row.multiply is not None
        return self.row.multiply(sum_, weights, values)
