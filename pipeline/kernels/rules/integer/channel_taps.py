"""Schedule depthwise sums of integer products on a core without vectors, by Arm's smlad: rows of a window in pairs.

    for … rows of the result, channels:
        taps[i / 2, j] = weight[i, j] and weight[i + 1, j], two int16, 0 for rows of padding
        start = − zero point · Σ taps
        for tiles of places:
            sums[places] = start
            for columns of the tile:
                sums[p] = couples(sums[p], x[rows i and i + 1, column], taps[i / 2, column − p · stride])      for each i, p
                result[p] = epilogue(sums[p])         as soon as it is complete

A column is read once for all windows of a tile. Columns of padding are the zero point. The last tile overlaps the one before.
"""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, PrimFunc, Stmt

from ....targets import Machine
from ....tir.expressions import loads, replaced, uses
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import buffer_of, int64, sequence
from ....tir.operators.pairs import couples
from ....tir.operators.quads import couple
from ..line_buffer import loop_of
from .channel_windows import ChannelWindows
from .integer_sum import IntegerSum
from .loops import overlapped
from .micro_kernel import MicroKernel
from .sum_builder import Axes

#: sums of a tile at most
_SUMS = 6
#: instructions of a column, of a result, and of a tile
_COLUMN, _RESULT, _TILE = 4, 15, 6


class ChannelTaps(ChannelWindows):
    """Build the kernel. Raises NoMatch for other forms."""

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        if self.zero is None:
            raise NoMatch("the factors are not bytes")
        places, self.whole = self.axes[self.x], self._whole_windows()
        #: places of a tile
        self.high = places if places <= _SUMS else min(range(1, _SUMS + 1), key=self._cost)
        count = len(self.joined) * self.taps
        #: weights of the channel, the start of its sums, and the sums of a tile
        self.held = buffer_of("held", [count + 1 + self.high], "int32")
        self.start_at, self.sums_at = count, count + 1

    def _lanes(self, _machine: Machine) -> int:
        return 1

    def _cost(self, high: int) -> float:
        """Return the instructions of a line by tiles of so many places."""
        return -(-len(self.whole) // high) * (_COLUMN * len(self.columns_of(high)) + _RESULT * high + _TILE)

    def kernel(self) -> PrimFunc:
        """Build lines, a channel after the other."""
        outer, channel = self.outer(), Var("channel", "int64")
        own = {**outer, self.f: channel}
        stmt = sequence([*self._weights(own), *self._line(own)])
        return self.in_rows(loop_of(channel, self.axes[self.f], stmt), outer, [self.held])

    def _word(self, place: int) -> Expr:
        return tirx.BufferLoad(self.held, [int64(place)])

    def _weights(self, own: dict[Var, Expr]) -> list[Stmt]:
        """Load the weights of a channel, and compute the start of its sums."""
        nothing, made, total = tirx.const(0, "int32"), [], tirx.const(0, "int32")
        for number, rows in enumerate(self.joined):
            conditions = [self.row_inside({**own, **row}) for row in rows]
            masks = [tirx.const(bits, "int32") if each is None else tirx.Select(each, tirx.const(bits, "int32"), nothing)
                     for each, bits in zip(conditions, (0xFFFF, -0x10000) if len(rows) > 1 else (-1,))]  # fmt: skip
            for tap in range(self.taps):
                word = _word([self._weight(row, tap, own, own[self.f]).astype("int16") for row in rows])
                if any(each is not None for each in conditions):
                    word = tirx.bitwise_and(word, tirx.bitwise_or(*masks) if len(rows) > 1 else masks[0])
                place = number * self.taps + tap
                made.append(BufferStore(self.held, word, [int64(place)]))
                total = _added(total, self._word(place), tirx.const(0x10001 if len(rows) > 1 else 1, "int32"), rows)
        assert self.zero is not None
        start = total * tirx.const(-self.zero, "int32") if self.zero else nothing
        return [*made, BufferStore(self.held, start, [int64(self.start_at)])]

    def _line(self, own: dict[Var, Expr]) -> list[Stmt]:
        """Compute a line: tiles of whole windows in a loop, those at its edges alone, short lines at once."""
        places = self.axes[self.x]
        if places == self.high:
            return self._tile(own, int64(0), places, first=0)
        first = self.whole.start
        loop = overlapped(
            "tile", len(self.whole), self.high, lambda start: sequence(self._tile(own, start + first, self.high))
        )
        edges = [place for place in range(places) if place not in self.whole]
        return [loop, *(stmt for place in edges for stmt in self._tile(own, int64(place), 1, first=place))]

    def _tile(self, own: dict[Var, Expr], start: Expr, high: int, first: int | None = None) -> list[Stmt]:
        """Compute so many results side by side; `first` is their start if columns may be padding."""
        made: list[Stmt] = [
            BufferStore(self.held, self._word(self.start_at), [int64(self.sums_at + place)]) for place in range(high)
        ]
        low, end = self.columns()
        for column in self.columns_of(high):
            inside = first is None or low <= first * self.stride + column < end
            values = [self._value(own, rows, start * self.stride + column, inside) for rows in self.joined]
            for place in range(high):
                tap, rest = divmod(column - place * self.stride, self.step)
                if rest or not 0 <= tap < self.taps:
                    continue
                for number, value in enumerate(values):
                    at = self.sums_at + place
                    total = _added(self._word(at), value, self._word(number * self.taps + tap), self.joined[number])
                    made.append(BufferStore(self.held, total, [int64(at)]))
                if tap == self.taps - 1:
                    made.append(
                        BufferStore(*self.result(self._word(self.sums_at + place), {**own, self.x: start + place}))
                    )
        return made

    def _value(self, own: dict[Var, Expr], rows: list[dict[Var, Expr]], column: Expr, inside: bool) -> Expr:
        """Return the values of one or two rows at a column."""
        return _word(
            [self._element({**own, **row}, column) if inside else tirx.const(self.zero, "int16") for row in rows]
        )

    def _element(self, values: Axes, column: Expr) -> Expr:
        """Return an element as it is in memory: of any row if its own is padding, where weights are 0."""
        moved = Var("column", "int64")
        load = loads(self.element(values, moved))[0]
        condition = self.row_inside(values)
        if condition is not None:
            apart = [not uses(index, moved) and not uses(index, values[self.f]) for index in load.indices]
            indices = [
                tirx.Select(condition, index, int64(0)) if each else index for index, each in zip(load.indices, apart)
            ]
            load = tirx.BufferLoad(load.source, indices)
        return replaced(load, {moved: column}).astype("int16")


def _word(values: list[Expr]) -> Expr:
    """Return two int16 as the halves of an int32, or one as an int32."""
    return couple(*values) if len(values) > 1 else values[0].astype("int32")


def _added(total: Expr, one: Expr, other: Expr, rows: list[dict[Var, Expr]]) -> Expr:
    """Add the products of words of one or two rows."""
    return couples(total, one, other) if len(rows) > 1 else total + one * other
