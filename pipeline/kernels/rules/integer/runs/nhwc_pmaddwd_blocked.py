"""Schedule integer products of weights by pairs along long runs: a tile widens its data part by part.

    for … rows of the result, blocks of filters, tiles of places:
        acc[places, filters] = 0
        for parts of the channels:
            lines[p, c] = a channel less its zero point, int16
            for pairs r of the part:
                acc[p, 0:8] += pairs(weight[part, r, 0:8], lines[p, 2 r], lines[p, 2 r + 1])
        result[tile] = epilogue(acc)

Lines stay short for any number of channels. Data is widened again for each block of filters, which costs less than the
products of a vector of them; a block's weights are read once for all tiles. Sums of integers are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, Stmt

from .....support.divisors import divisors
from .....targets import Machine
from .....tir.index_grid import NoMatch
from .....tir.loop_nests import int64, sequence
from ...line_buffer import loop_of
from ..integer_sum import IntegerSum
from ..loops import in_vectors, load_neighbours
from ..micro_kernel import MicroKernel
from .nhwc_runs import ALONE, NhwcRuns

_SERIAL = 0
#: bytes of the lines of a tile, and of lines that a rule for whole runs may keep
_LINES, _WHOLE = 1536, 3072
#: least pairs of a part
_LEAST = 16


class NhwcPmaddwdBlocked(NhwcRuns):
    """Build the kernel. Raises NoMatch for other forms, and for runs that are short enough."""

    #: lines are filled by tiles
    in_place = True

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        if 2 * self.high * self.run <= (ALONE if self.axes[self.x] == 1 else _WHOLE):
            raise NoMatch("lines hold the whole run")

    def _check_run(self) -> None:
        if self.padding is not None or self.tap is not None or self.c is None or self.run % 2:
            raise NoMatch("no run of the channels of a place in pairs")
        if any(self.axes[var] > 1 for var in self.summed if not var.same_as(self.c)):
            raise NoMatch("the sum is over more than channels")

    def _extents(self, places: int) -> list[int]:
        rows = min(places, self.high)
        most = ALONE if self.axes[self.x] == 1 else _LINES
        self.part = max(n for n in divisors(self.run // 2, self.run // 2) if 4 * rows * n <= most)
        if self.part < _LEAST:
            raise NoMatch("no parts of a fitting length")
        return [rows, 2 * self.part]

    def buffers(self) -> list[Var]:
        return [self.lines, self.acc]

    def in_parts(self, build: Callable[[Expr], Stmt], outer: dict[Var, Expr], start: Expr, rows: int) -> Stmt:
        part, row = Var("part", "int64"), Var("row", "int64")

        def stored(at: Expr) -> BufferStore:
            value = self.element({**outer, self.c: part * (2 * self.part) + at}, (start + row) * self.stride)
            return BufferStore(self.lines, value, [row, at])

        line = sequence(in_vectors(0, 2 * self.part, self.row.fill_lanes, stored))
        filled = For(row, int64(0), int64(rows), _SERIAL, line)
        summed = self.in_steps(lambda group: build(part * self.part + group), self.part)
        return loop_of(part, self.run // 2 // self.part, sequence([filled, summed]))

    def group(self, _values: dict[Var, Expr], _start: Expr, row: int, _at: Expr, group: Expr) -> Expr:
        return load_neighbours(self.lines, [int64(row)], tirx.floormod(group, self.part) * 2, 2)
