"""Read columns of runs of bytes into registers, loop over blocks of filters: for byte_runs.py and byte_groups.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, IfThenElse, PrimFunc, Stmt

from ....tir.expressions import replaced
from ....tir.index_grid import Unknown
from ....tir.loop_nests import int64, sequence
from ....tir.operators.quads import neighbours
from ....tir.operators.runs import RUN, SUMS
from ...weights.repack_sums import RepackSums
from ..line_buffer import loop_of
from .quad_windows import Tile
from .tile_results import TileResults

_VECTORIZED = 2
#: most tiles with padding in a row, each read by code of its own
_MOST_EDGES = 4


class ByteColumns(TileResults):
    """Hold the columns of a tile in `values`, runs of bytes; the second halves are complemented if `complemented`.

    Filters are read in blocks numbered `block`. Raises Unknown for other forms.
    """

    values: Var
    packed: Var
    repack: RepackSums
    complemented = True

    def __init__(self, kernel: PrimFunc, repackable: frozenset[int]):
        super().__init__(kernel, repackable)
        self.read_memory()
        if not (self.adjacent or self.axes[self.x] == 1) or self.axes[self.c] % RUN:
            raise Unknown("channels are not runs")
        self.taps = 1 if self.tap is None else self.axes[self.tap]
        self.block = Var("block", "int64")

    def columns_of(self, rows: int) -> list[int]:
        """List the columns that a tile reads, counted from its first."""
        return sorted({row * self.stride + tap * self.step for row in range(rows) for tap in range(self.taps)})

    def in_blocks(self, stmt: Stmt) -> Stmt:
        """Loop over blocks of filters."""
        block = Var("block", "int64")
        return loop_of(block, self.axes[self.f] // self.width, replaced(stmt, {self.block: block}))

    def read(self, tile: Tile, columns: Sequence[int], own: int = 0) -> Stmt:
        """Read the columns of a tile: by code of its own for each tile with padding."""

        def filled(first: Expr, inside: Sequence[bool]) -> Stmt:
            parts = []
            for n, at in enumerate(columns):
                lane = Var("lane", "int64")
                store = BufferStore(self.values, self._pair(tile, first + at, lane, inside[n]), [int64(own + n), lane])
                parts.append(For(lane, int64(0), int64(RUN // 2), _VECTORIZED, store))
            return sequence(parts)

        each = {
            start: tuple(self.low <= start * self.stride + at < self.high for at in columns) for start in tile.starts
        }
        edges = [start for start, inside in each.items() if not all(inside)]
        if len(edges) > _MOST_EDGES:
            raise Unknown("the padding is wider than a few tiles")
        there = filled(tile.start * self.stride, [True] * len(columns)) if len(edges) < len(each) else None
        for start in edges:
            alone = filled(int64(start * self.stride), each[start])
            there = alone if there is None else IfThenElse(tile.start == start, alone, there)
        assert there is not None
        if not self.by_row:
            return there
        return IfThenElse(self._inside(self.by_row, tile, int64(0)), there, filled(int64(0), [False] * len(columns)))

    def start_of(self, filter_: Expr) -> Expr:
        """Return the start of the sums of a filter of the block."""
        return neighbours(
            *(tirx.BufferLoad(self.packed, [self.block, filter_ * 4 + (self.repack.starts + n)]) for n in range(4))
        )

    def _pair(self, tile: Tile, column: Expr, lane: Expr, inside: bool) -> Expr:
        """Return two bytes of a column."""
        word: Expr = tirx.const((self.zero & 0xFF) * 0x0101, "uint16")
        if inside:
            indices = [self._raw_at(tile.outer, tile.loops, tile.number * RUN + lane * 2 + n, column) for n in (0, 1)]
            word = neighbours(*(tirx.BufferLoad(self.raw.source, each) for each in indices)).astype("uint16")
            if self.dtype == "uint8":
                word = tirx.bitwise_xor(word, tirx.const(0x8080, "uint16"))
        if not self.complemented:
            return word
        second = tirx.shift_right(lane, int64(2)).astype("uint16")  # 0 in the first half, else 1
        return tirx.bitwise_xor(word, tirx.const(0, "uint16") - second)


def in_vector(made: Callable[[Expr], Stmt]) -> Stmt:
    """Store a vector of sums."""
    lane = Var("lane", "int64")
    return For(lane, int64(0), int64(SUMS), _VECTORIZED, made(lane))
