"""Schedule integer products of weights along runs: values that lie side by side in memory, by x86's vpmaddwd and vpdpbusd.

    for … rows of the result, bands of places along them:
        lines[i, column · C + c] = x less its zero point, int16, or the padding; or bytes    (none if bytes can be read in place)
        for blocks of filters, tiles of places:
            acc[places, filters] = 0; of bytes − zero point · Σ weight[filters]
            for i, groups r of two or four of a run (taps along the line, and the channels of each):
                acc[p, 0:8] += pairs(weight[i, r, 0:8], lines[i, p · stride · C + 2 r : + 2]); or fours
            result[tile] = epilogue(acc)

A run of taps and channels that is not whole groups ends with weights of 0. Bytes of another sign than the instruction's are offset
by 128, and so is their zero point. Sums of integers are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable
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
from .....tir.operators.quads import vector_of
from ...line_buffer import loop_of
from ..integer_sum import IntegerSum
from ..loops import in_tiles, load_neighbours, over_tile
from ..micro_kernel import MicroKernel
from ..sum_builder import Axes
from .lines import Lines

_SERIAL = 0
#: candidate vectors of a block of filters, and most sums of a tile: more hide no latency, and take more code
_VECTORS, _SUMS = (4, 3, 2, 1), 16
#: lanes of results that are narrowed to bytes together
_NARROWED = 16
#: bytes of the line buffer: preferred, at most
_LINES, _MOST_LINES = 1536, 3072
#: bytes of the line of a single place at most: it is widened for one row of sums, and tensors of such models are small
ALONE = 192
#: most tiles of a band
_MOST_TILES = 64


class NhwcRuns(Lines):
    """Build the kernel; `c` is the axis of channels, if they are side by side. Raises NoMatch for other forms.

    `run` values are neighbours in memory, of `channels` and taps; `grouped` of them are multiplied at once.
    """

    anywhere = True
    #: least bytes of a run, most groups of an unrolled step, and the kind of loops around the steps
    least, unrolled, kind = 4, 2, _SERIAL
    #: whether data is read from memory, not from lines of a band; the order of weights unless it is that of groups
    in_place, order = False, ""

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.grouped = row.group
        self.c = self._channels()
        self.channels = 1 if self.c is None else self.axes[self.c]
        in_run = self._in_run()
        self.run = prod(self.axes[var] for var in in_run)
        self._check_run()
        self.others = [var for var in self.summed if self.axes[var] > 1 and var not in in_run]
        #: summed axes of the lines, besides channels side by side and the tap
        self.rows = [var for var in self.summed if var not in (*self.units, self.tap, self.c)]
        self.lanes = next((lanes for lanes in (machine.lanes, 8) if self.axes[self.f] % lanes == 0), 0)
        if not self.lanes:
            raise NoMatch("the filters are not whole vectors")
        self.high, self.width = self._tile_shape()
        self._pack(in_run)
        self.tiles = self._tiles_of_a_band()
        self.lines = buffer_of("lines", self._extents(self.tiles * self.high), self.line_dtype)
        self.acc = buffer_of("acc", [self.high, self.width], "int32")

    @property
    def line_dtype(self) -> str:
        return self.row.values or self.dtype

    def _in_run(self) -> list[Var]:
        """List the summed axes of a run, the fastest last."""
        return [var for var in (self.tap if self.step == 1 else None, self.c) if var is not None]

    def _check_run(self) -> None:
        """Read bytes, maybe in place. Raises NoMatch for few bytes, a run of one value, or an odd one that another rule takes in pairs."""
        if not self.row.values.startswith("int16"):
            if self.run < self.least:
                raise NoMatch("no run of fours")
            self.read_bytes()
            contiguous = self.run == self.channels or not self.chosen
            self.in_place = self.padding is None and self.run % self.grouped == 0 and contiguous and not self.flipped
        elif self.run == 1 or (self.run % 2 and any(self.axes[var] % 2 == 0 for var in self.pairable())):
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

    def _pack(self, in_run: list[Var]) -> None:
        """Choose the layout of the weight."""
        self.weight_places(var for var in self.summed if var not in self.units)
        if any(uses(index, var) and not index.same_as(var) for index in self.weight.indices for var in self.axes):
            raise NoMatch("the weight is not indexed by axes")
        run = self.weight_places(var for var in in_run if var not in self.units)
        order = self.order or f"r k/{self.grouped} f k%{self.grouped}"
        zero = self.zero if self.zero is None or isinstance(self.zero, int) else 1
        self.pack(self.width, order, run, self.grouped, zero=zero)

    @property
    def steps(self) -> int:
        """Count the groups of a run."""
        return -(-self.run // self.grouped)

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
        filled = [] if self.in_place else [self.fill(self.rows, outer, start, count, inside)]
        return sequence([*filled, computed])

    def _tile(self, outer: dict[Var, Expr], start: Expr, offset: Expr, block: Expr, rows: int) -> Stmt:
        loops = self.loops_over(self.others)

        each = partial(over_tile, rows, self.width)
        axes = {**self.units, **outer, **loops}
        gap = loops[self.tap] * self.step if self.tap is not None and self.tap in loops else int64(0)

        def product(group: Expr, row: int, lane: Expr) -> Stmt:
            first = ((offset + row) * self.stride + gap) * self.channels
            values = self.group({**outer, **loops}, start, row, first, group)
            sum_ = tirx.BufferLoad(self.acc, [int64(row), lane])
            total = self.added(sum_, self._weights_at(block, axes, group, lane), values)
            return BufferStore(self.acc, total, [int64(row), lane])

        moved, sums = self._moved_sums()

        def stored(row: int, lane: Expr) -> Stmt:
            own = {**outer, self.x: start + offset + row, self.f: block * self.width + lane}
            return BufferStore(*self.result(tirx.BufferLoad(sums, [int64(row), lane]), own))

        zeros = each(self.lanes, lambda row, lane: BufferStore(self.acc, self.start(block, lane), [int64(row), lane]))
        body = self.in_parts(
            lambda group: sequence(each(self.lanes, partial(product, group))), outer, start + offset, rows
        )
        return sequence([*zeros, self.nest(loops, body, self.kind), *moved, *each(self._together(), stored)])

    def _moved_sums(self) -> tuple[list[Stmt], Var]:
        """Return the statements that move the sums of a tile, if any, and the buffer of results."""
        return [], self.acc

    def _together(self) -> int:
        """Return the lanes of results: they are narrowed by whole vectors of bytes."""
        return self.lanes if self.width % _NARROWED else max(self.lanes, _NARROWED)

    def in_parts(self, build: Callable[[Expr], Stmt], _outer: dict[Var, Expr], _start: Expr, _rows: int) -> Stmt:
        """Build the sum along a run, from the number of a group of values."""
        return self.in_steps(build, self.steps)

    def in_steps(self, build: Callable[[Expr], Stmt], steps: int) -> Stmt:
        """Loop over `steps` groups of values, unrolled by a factor that divides them."""
        step = Var("step", "int64")
        unrolled = max(n for n in range(1, self.unrolled + 1) if steps % n == 0)
        body = sequence([build(step * unrolled + number) for number in range(unrolled)])
        return loop_of(step, steps // unrolled, body)

    def start(self, block: Expr, lane: Expr) -> Expr:
        """Return the first term of the sum of a filter."""
        if self.zero is None:
            return tirx.const(0, "int32")
        held = self.start_of(block, lane)
        return held if isinstance(self.zero, int) else held * self.zero

    def group(self, values: dict[Var, Expr], start: Expr, _row: int, at: Expr, group: Expr) -> Expr:
        """Load a group of values side by side. `at` is the first value of their window in the lines."""
        source, row = self.lines, [*(values[var] for var in self.rows), at]
        if self.in_place:  # of the first place's indices, only the last one grows
            first = self.value_at(values, start * self.stride + tirx.floordiv(at, self.channels), int64(0))
            source, row = first.source, list(first.indices)
        return self._neighbours(source, row[:-1], row[-1] + group * self.grouped)

    def _neighbours(self, buffer: Var, row: list[Expr], first: Expr) -> Expr:
        """Load a group of values or weights."""
        if not self.row.vectors:
            return load_neighbours(buffer, row, first, self.grouped)
        return vector_of(*(tirx.BufferLoad(buffer, [*row, first + n]) for n in range(self.grouped)))

    def _weights_at(self, block: Expr, axes: Axes, group: Expr, lane: Expr) -> Expr:
        """Load the weights of a group."""
        weights = [replaced(index, axes) for index in self.weight.indices]
        row = (int64(0) + self.repack.linear(weights, self.repack.rest)) * self.steps + group
        return self._neighbours(self.packed, [block], (row * self.width + lane) * self.grouped)

    def added(self, sum_: Expr, weights: Expr, values: Expr) -> Expr:
        """Return the sum with the products of a group."""
        assert self.row.multiply is not None
        return self.row.multiply(sum_, weights, values)
