"""Choose how much of a window over planes is summed at once.

    filters × vectors × rows accumulators stay in registers; a vector of data meets all filters, a weight all vectors

Loads bound the sums of a single filter: a vector that starts anywhere lies in two lines of the cache.
"""

from __future__ import annotations

from ....support.divisors import divisors
from ..sliding_plane import Plane
from ..tiles.tile_size import IN_FLIGHT

#: cycles to load a vector that starts anywhere, and a weight for all lanes
_LOAD, _SCALAR = 1.0, 0.5
#: registers of other values than accumulators and the weights of a tap
_OTHERS = 2
#: most cycles of a multiply-add worth the code
_WORTH = 1.1
#: parts of a row with code of their own: both ends, and all between
ENDS = 3
#: largest number of rows at once
_ROWS = 4


def best_block(
    plane: Plane, in_row: int, shared: int, registers: int, products: int, *, whole: bool
) -> tuple[int, int, int] | None:
    """Return filters, vectors and rows of the block of least cycles, then of least code.

    Windows have stride 1 along rows. A row has `in_row` vectors, and `shared` filters read a plane. Parts of a row unroll at most so many products. With
    `whole`, the vectors are all of a row. None if no block is worth it.
    """
    found = []
    for filters in divisors(shared, registers):
        for vectors in {-(-in_row // parts) for parts in range(1, 2 if whole else in_row + 1)}:
            for rows in range(1, min(plane.height, _ROWS) + 1):
                accumulators = filters * vectors * rows
                held = accumulators + filters * min(rows, plane.rows.taps) + _OTHERS
                parts = min(-(-in_row // vectors), ENDS)
                taps = plane.rows.taps * plane.columns.taps
                if held > registers or max(parts / 2, 1) * accumulators * taps > products:
                    continue
                # the last block of a row, and of a plane, overlaps the one before
                again = -(-in_row // vectors) * vectors / in_row * -(-plane.height // rows) * rows / plane.height
                cycles = _cycles(plane, filters, vectors, rows) * again / (accumulators * taps)
                if cycles <= _WORTH:
                    found.append((round(cycles, 3), accumulators, (filters, vectors, rows)))
    return min(found, key=lambda each: each[:2])[2] if found else None


def _cycles(plane: Plane, filters: int, vectors: int, rows: int) -> float:
    """Estimate the cycles of a block: two multiply-adds, or two loads, start in one."""
    high, wide, accumulators = plane.rows.taps, plane.columns.taps, filters * vectors * rows
    needed = (rows - 1) * plane.rows.stride + high
    loads = needed * wide * vectors * _LOAD + high * wide * filters * rows * _SCALAR
    return max(max(accumulators, IN_FLIGHT) * high * wide / 2, loads)
