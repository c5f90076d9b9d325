"""Read columns of runs of bytes into registers, loop over blocks of filters: for neon_c16.py and neon_int16_accumulate.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, Stmt

from ....targets import Machine
from ....tir.expressions import replaced
from ....tir.index_grid import NoMatch
from ....tir.loop_nests import int64, sequence
from ....tir.operators.quads import neighbours
from ....tir.operators.runs import RUN
from ...weights.repack_sums import RepackSums
from ..line_buffer import loop_of
from .integer_sum import IntegerSum
from .loops import by_value, guarded, load_neighbours, vector
from .micro_kernel import MicroKernel
from .quad_windows import QuadWindows, Tile

#: most tiles with padding in a row, each read by code of its own
_MOST_EDGES = 4


class ByteColumns(QuadWindows):
    """Hold the columns of a tile in `values`, runs of bytes; the second halves are complemented if `complemented`.

    Filters are read in blocks numbered `block`. Raises NoMatch for other forms.
    """

    values: Var
    repack: RepackSums
    complemented = True

    def __init__(self, form: IntegerSum, machine: Machine, row: MicroKernel):
        super().__init__(form, machine, row)
        self.read_memory()
        if not (self.adjacent or self.axes[self.x] == 1) or self.axes[self.c] % RUN:
            raise NoMatch("channels are not runs")
        self.block = Var("block", "int64")

    def in_blocks(self, stmt: Stmt) -> Stmt:
        """Loop over blocks of filters."""
        block = Var("block", "int64")
        return loop_of(block, self.axes[self.f] // self.width, replaced(stmt, {self.block: block}))

    def read(self, tile: Tile, columns: Sequence[int], own: int = 0) -> Stmt:
        """Read the columns of a tile: by code of its own for each tile with padding."""

        def filled(first: Expr, inside: Sequence[bool]) -> Stmt:
            def pair(n: int, lane: Expr) -> BufferStore:
                value = self._pair(tile, first + columns[n], lane, inside[n])
                return BufferStore(self.values, value, [int64(own + n), lane])

            return sequence([vector(RUN // 2, partial(pair, n)) for n in range(len(columns))])

        each = {
            start: tuple(self.low <= start * self.stride + at < self.high for at in columns) for start in tile.starts
        }
        edges = [start for start, inside in each.items() if not all(inside)]
        if len(edges) > _MOST_EDGES:
            raise NoMatch("the padding is wider than a few tiles")
        whole = filled(tile.start * self.stride, [True] * len(columns)) if len(edges) < len(each) else None
        cases = [(start, filled(int64(start * self.stride), each[start])) for start in edges]
        there = by_value(tile.start, cases, whole)
        condition = self.row_inside({**tile.axes, self.c: int64(0)}, self.by_row)
        return guarded(condition, [there], [filled(int64(0), [False] * len(columns))])

    def zero_at(self, row: int, lane: Expr) -> BufferStore:
        """Store 0 to a sum."""
        return BufferStore(self.acc, tirx.const(0, "uint32"), [int64(row), lane])

    def start_of(self, filter_: Expr) -> Expr:
        """Return the start of the sums of a filter of the block."""
        return load_neighbours(self.packed, [self.block], filter_ * 4, 4, self.repack.starts)

    def _pair(self, tile: Tile, column: Expr, lane: Expr, inside: bool) -> Expr:
        """Return two bytes of a column."""
        word: Expr = tirx.const((self.zero & 0xFF) * 0x0101, "uint16")
        if inside:
            axes = [{**tile.axes, self.c: tile.number * RUN + lane * 2 + n} for n in (0, 1)]
            word = neighbours(*(self.raw_at(each, column) for each in axes)).astype("uint16")
            if self.dtype == "uint8":
                word = tirx.bitwise_xor(word, tirx.const(0x8080, "uint16"))
        if not self.complemented:
            return word
        second = tirx.shift_right(lane, int64(2)).astype("uint16")  # 0 in the first half, else 1
        return tirx.bitwise_xor(word, tirx.const(0, "uint16") - second)
