"""Schedule depthwise sums of integer products with channels side by side: rows widened in a line buffer, sums in registers.

    for … rows of the result, bands of places along them:
        for blocks of channels:
            lines[i / 2, column, 0:8] = rows i and i + 1 of x less its zero point, two int16, or the padding
            for places of the band:
                result[place, 0:8] = epilogue(Σ pairs(weight[i, j, 0:8], weight[i + 1, j, 0:8], lines[i / 2, place · stride + j]))

Machines without `pairs` read the data in place of lines. The last block of channels overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import product as combinations
from math import prod

from tvm import sym, tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, IfThenElse, IntImm, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import loads, replaced, uses
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.pairs import pairs
from ....tir.operators.quads import couple
from ..line_buffer import loop_of
from .byte_pairs import sum_of_bytes, sum_of_products
from .integer_sum import IntegerSum
from .loops import vector
from .micro_kernel import MicroKernel
from .sum_builder import SumBuilder

#: bytes of the line buffer, and products of a result, which are unrolled
_LINES, _MOST_TAPS = 1024, 64
#: least lanes where products of bytes are added in pairs
_BYTES = 8
#: windows at the edges of a line, which are unrolled; fewest windows in between, and numbers in registers, to compute two at once
_MOST_EDGES, _LONG, _MANY = 4, 8, 128


class ChannelWindows(SumBuilder):
    """Build the kernel; `f` is the axis of channels. Raises NoMatch for other forms."""

    #: windows at the edges of a line at most
    edges = _MOST_EDGES

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.lanes = self._lanes(machine)
        others = [var for var in self.summed if not var.same_as(self.tap) and self.axes[var] > 1]
        #: values of the summed axes but the tap, for each row of the window
        self.rows = [
            {var: int64(value) for var, value in zip(others, values)}
            for values in combinations(*(range(self.axes[var]) for var in others))
        ]
        if not 1 < self.taps * len(self.rows) <= _MOST_TAPS:
            raise NoMatch("the window has one tap, or too many to unroll")
        #: the zero point of the data, if its bytes are multiplied as they are
        self.zero = self._zero() if machine.smull_sadalp or machine.lanes == 1 else None
        #: whether registers hold the columns of two windows
        self.many = machine.registers * machine.lanes >= _MANY
        #: rows of the window of each line
        self.joined = [self.rows[n : n + 2] for n in range(0, len(self.rows), 2)]
        places = self.axes[self.x]
        most = max((n for n in range(1, places + 1) if self._bytes(n) <= _LINES), default=1)
        self.size = -(-places // -(-places // most))
        self.lines = buffer_of("lines", self._extents(self.size), "int32")
        if not self.machine.pmaddwd and places - len(self._whole_windows()) > self.edges:
            raise NoMatch("the padding is wider than a few windows")

    def _lanes(self, machine: Machine) -> int:
        """Return the channels of a block. Raises NoMatch if they are not neighbours."""
        most = max(machine.lanes, _BYTES if machine.smull_sadalp else 0)
        found = max((lanes for lanes in (4, 8, most) if lanes <= min(most, self.axes[self.f])), default=0)
        if not found or not self._side_by_side():
            raise NoMatch("channels are not whole vectors side by side")
        return found

    def _zero(self) -> int | None:
        """Return the zero point of the data if both factors are bytes."""
        with suppress(NoMatch):
            zero, _ = self.bytes_()
            return int(zero) if isinstance(zero, IntImm) else None
        return None

    def _side_by_side(self) -> bool:
        """Return whether channels are neighbours in the data, the weight and the result."""
        f = Var("f", "int64")
        own = {var: int64(0) for var in self.axes} | {self.f: f}
        _, _, indices = self.result(tirx.const(0, "int32"), own)
        raw, weight = self.raw(), self.weight
        return (
            self._walks(weight.source, weight.indices, self.f)
            and self._walks(raw.source, raw.indices, self.f)
            and self._walks(self.original.params[-1], indices, f)
        )

    def _walks(self, buffer: Var, indices: Sequence[Expr], var: Var) -> bool:
        last = max(place for place, extent in enumerate(buffer.ty.shape) if int(extent) > 1)
        if any(uses(index, var) for place, index in enumerate(indices) if place != last):
            return False
        linear = sym.detect_linear_equation(indices[last], [var])
        return bool(linear) and isinstance(linear[0], IntImm) and int(linear[0]) == 1

    def _extents(self, places: int) -> list[int]:
        return [len(self.joined), self.span(places), self.lanes]

    def _bytes(self, places: int) -> int:
        return 4 * prod(self._extents(places))

    def kernel(self) -> PrimFunc:
        """Build bands of places, or lines."""
        outer = self.outer()
        if self.machine.pmaddwd:
            stmt = sequence(self.bands(self.size, partial(self._band, outer)))
        else:
            stmt = self._blocks(lambda channel: self._direct(outer, channel))
        return self.in_rows(stmt, outer, [self.lines] if self.machine.pmaddwd else [])

    def _blocks(self, build: Callable[[Expr], Stmt]) -> Stmt:
        """Loop over blocks of channels: the last one overlaps."""
        whole, rest = divmod(self.axes[self.f], self.lanes)
        block = Var("block", "int64")
        parts = [loop_of(block, whole, build(block * self.lanes))]
        return sequence([*parts, build(int64(self.axes[self.f] - self.lanes))] if rest else parts)

    def _whole_windows(self) -> range:
        """Return the places whose windows have no column of padding."""
        low, high = self.columns()
        reach = (self.taps - 1) * self.step
        found = [p for p in range(self.axes[self.x]) if low <= p * self.stride and p * self.stride + reach < high]
        return range(found[0], found[-1] + 1) if found else range(0)

    def _direct(self, outer: dict[Var, Expr], channel: Expr) -> Stmt:
        """Compute a block of channels from the data itself, without the products of padding: rows are checked where one is missing."""
        whole, inside = self._whole_windows(), self.columns()
        conditions = [self.row_inside({**outer, self.f: channel, **row}) for row in self.rows]

        def stored(place: Expr, taps: Sequence[int], checked: bool, lane: Expr) -> BufferStore:
            terms = []
            for (row, condition), tap in combinations(zip(self.rows, conditions), taps):
                value = self.element({**outer, **row, self.f: channel + lane}, place * self.stride + tap * self.step)
                value, nothing = (value, 0) if self.zero is None else (loads(value)[0], self.zero)
                if checked and condition is not None:
                    value = tirx.if_then_else(condition, value, tirx.const(nothing, value.ty.dtype))
                terms.append((self._weight(row, tap, outer, channel + lane), value))
            total = sum_of_products(terms) if self.zero is None else sum_of_bytes(terms, self.zero)
            return BufferStore(*self.result(total, {**outer, self.x: place, self.f: channel + lane}))

        def window(place: Expr, taps: Sequence[int], checked: bool) -> Stmt:
            return vector(self.lanes, partial(stored, place, taps, checked))

        def line(checked: bool) -> Stmt:
            parts = []
            for edge in range(self.axes[self.x]):
                if edge not in whole:
                    taps = [n for n in range(self.taps) if inside[0] <= edge * self.stride + n * self.step < inside[1]]
                    parts.append(window(int64(edge), taps, checked))
            place = Var("place", "int64")
            overlap = self.zero is not None and self.stride < self.taps * self.step
            together = 2 if self.many and overlap and len(whole) >= _LONG else 1  # LLVM unrolls short loops itself
            loops, rest = divmod(len(whole), together)
            at = [place * together + (whole.start + n) for n in range(together)]
            if loops:
                parts.append(loop_of(place, loops, sequence([window(each, range(self.taps), checked) for each in at])))
            parts += [window(int64(whole.stop - 1), range(self.taps), checked)] if rest else []
            return sequence(parts)

        return _checked(conditions, line)

    def _band(self, outer: dict[Var, Expr], start: Expr, count: int, inside: tuple[int, int]) -> Stmt:
        """Compute a band of `count` places, by blocks of channels."""

        def computed(channel: Expr) -> Stmt:
            filled = self._filled({**outer, self.f: channel}, start, self.span(count), inside)
            place = Var("place", "int64")
            return sequence([*filled, loop_of(place, count, self._stored(outer, start, place, channel))])

        return self._blocks(computed)

    def _filled(self, values: dict[Var, Expr], start: Expr, span: int, inside: tuple[int, int]) -> list[Stmt]:
        """Fill the lines of a block of channels: `values` are those of the axes, of its first channel."""
        channel = values[self.f]
        conditions = [self.row_inside({**values, **row}) for row in self.rows]
        nothing = tirx.const(0, "int16")

        def column(number: int, at: Expr, checked: bool, empty: bool, lane: Expr) -> BufferStore:
            found: list[Expr] = []
            for row in self.joined[number]:
                value = {**values, **row, self.f: channel + lane}
                condition = conditions[self.rows.index(row)]
                each = nothing if empty else self.element(value, start * self.stride + at)
                guard = checked and condition is not None and not empty
                found.append(tirx.if_then_else(condition, each, nothing) if guard else each)
            both = couple(found[0], found[1] if len(found) > 1 else nothing)
            return BufferStore(self.lines, both, [int64(number), at, lane])

        def columns(first: int, end: int, checked: bool = False, empty: bool = False) -> list[Stmt]:
            at = Var("column", "int64")
            lines = range(len(self.joined))
            made = [vector(self.lanes, partial(column, line, at + first, checked, empty)) for line in lines]
            return [loop_of(at, end - first, sequence(made))] if first < end else []

        edges = [*columns(0, inside[0], empty=True), *columns(inside[1], span, empty=True)]
        if inside[0] >= inside[1]:
            return edges
        return [*edges, _checked(conditions, lambda checked: sequence(columns(*inside, checked)))]

    def _stored(self, outer: dict[Var, Expr], start: Expr, place: Expr, channel: Expr) -> Stmt:
        """Store the results of a block of channels at a place."""

        def summed(lane: Expr) -> BufferStore:
            total: Expr = tirx.const(0, "int32")
            for (number, rows), tap in combinations(enumerate(self.joined), range(self.taps)):
                line = tirx.BufferLoad(self.lines, [int64(number), place * self.stride + tap * self.step, lane])
                weights = [self._weight(row, tap, outer, channel + lane) for row in rows]
                term = pairs(couple(weights[0], weights[1] if len(rows) > 1 else tirx.const(0, "int8")), line)
                total = term if not number and not tap else total + term
            own = {**outer, self.x: start + place, self.f: channel + lane}
            return BufferStore(*self.result(total, own))

        return vector(self.lanes, summed)

    def _weight(self, row: dict[Var, Expr], tap: int, outer: dict[Var, Expr], channel: Expr) -> Expr:
        values = {**self.units, **outer, **row, **self.at_tap(tap), self.f: channel}
        return tirx.BufferLoad(self.weight.source, [replaced(index, values) for index in self.weight.indices])


def _checked(conditions: Sequence[Expr | None], build: Callable[[bool], Stmt]) -> Stmt:
    """Build a statement that checks rows for one that is padding, and one for where none is."""
    present = [each for each in conditions if each is not None]
    return IfThenElse(tirx.all(*present), build(False), build(True)) if present else build(False)
