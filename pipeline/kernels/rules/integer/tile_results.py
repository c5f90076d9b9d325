"""Store the results of a tile of places and filters: four neighbouring places at once where the result has them side by side."""

from __future__ import annotations

from tvm import tirx
from tvm.ir import Expr, Var
from tvm.tirx import BufferStore, For, Stmt

from ....tir.loop_nests import int64
from ....tir.operators.quads import byte, couple
from .quad_form import PLACES
from .quad_windows import QuadWindows

_VECTORIZED = 2
#: lanes of vectors of filters
LANES = 8


class TileResults(QuadWindows):
    """Hold the shape of a tile, `width` filters and at most `rows` places, and its sums `acc`, of four bytes."""

    width: int
    rows: int
    acc: Var

    def sum_at(self, row: int, lane: Expr) -> Expr:
        """Return the int32 sum of a place of the tile and a filter of its block, in a vectorised loop."""
        raise NotImplementedError

    def stored(self, outer: dict[Var, Expr], start: Expr, block: Expr, rows: int) -> list[Stmt]:
        """Store the epilogue of a tile of `rows` places from `start` on."""

        def result(row: Expr, sum_: Expr, filter_: Expr) -> tuple[Var, Expr, list[Expr]]:
            own = {**outer, self.x: start + row, self.f: block * self.width + filter_}
            return self.result(sum_, own)

        parts: list[Stmt] = []
        whole = rows // PLACES * PLACES if self.rows_last and self.bytes else 0
        for row in (*range(0, whole, PLACES), *range(whole, rows)):
            for first in range(0, self.width, LANES):
                lane = Var("lane", "int64")
                lanes = min(LANES, self.width - first)
                if row >= whole:
                    store = BufferStore(*result(int64(row), self.sum_at(row, lane + first), lane + first))
                    parts.append(For(lane, int64(0), int64(lanes), _VECTORIZED, store))
                    continue
                four = [
                    result(int64(row + n), self.sum_at(row + n, lane + first), lane + first)[1] for n in range(PLACES)
                ]
                word = couple(couple(four[0], four[1]), couple(four[2], four[3])).astype("uint32")
                free = first * (int(self.acc.ty.shape[-1]) // self.width)  # sums that have been read
                parts.append(
                    For(
                        lane,
                        int64(0),
                        int64(lanes),
                        _VECTORIZED,
                        BufferStore(self.acc, word, [int64(row), lane + free]),
                    )
                )
                for filter_ in range(lanes):
                    place = Var("place", "int64")
                    buffer, value, indices = result(place + row, tirx.const(0, "int32"), int64(first + filter_))
                    taken = byte(
                        tirx.BufferLoad(self.acc, [int64(row), int64(free + filter_)]).astype("int32"),
                        place.astype("int32"),
                        str(value.ty.dtype),
                    )
                    parts.append(For(place, int64(0), int64(PLACES), _VECTORIZED, BufferStore(buffer, taken, indices)))
        return parts
