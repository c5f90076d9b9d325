"""Choose how much of a window over planes is summed at once: pure arithmetic, without TVM.

    filters × vectors × rows accumulators stay in registers; a vector of data meets all filters, a weight all vectors

Loads bound the sums of a single filter: a vector that starts anywhere lies in two lines of the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ....support.divisors import divisors
from ..tiles.tile_size import IN_FLIGHT

#: cycles to load a vector that starts anywhere, one with a stride, and a weight for all lanes
_LOAD, _STRIDED_LOAD, _SCALAR = 1.0, 3.0, 0.5
#: registers of other values than accumulators and the weights of a tap
_OTHERS = 2
#: most cycles of a multiply-add worth the code
_WORTH = 1.1
#: parts of a row with code of their own: both ends, and all between
ENDS = 3
#: largest number of rows at once
_ROWS = 4


@dataclass(frozen=True)
class Windows:
    """Windows over a plane: rows, vectors of a row, filters that share it, taps and strides by rows and columns."""

    height: int
    vectors: int
    filters: int
    taps: tuple[int, int]
    strides: tuple[int, int]


def best_block(windows: Windows, registers: int, products: int, *, whole: bool = False) -> tuple[int, int, int] | None:
    """Return filters, vectors and rows of the block of least cycles, then of least code.

    Its parts unroll at most so many products. With `whole`, its vectors are all of a row. None if none is worth it.
    """
    found = []
    for filters in divisors(windows.filters, registers):
        for vectors in {-(-windows.vectors // parts) for parts in range(1, 2 if whole else windows.vectors + 1)}:
            for rows in range(1, min(windows.height, _ROWS) + 1):
                accumulators = filters * vectors * rows
                held = accumulators + filters * min(rows, windows.taps[0]) + _OTHERS
                parts = min(-(-windows.vectors // vectors), ENDS)
                if held > registers or max(parts / 2, 1) * accumulators * prod(windows.taps) > products:
                    continue
                cycles = _cycles(windows, filters, vectors, rows)
                if cycles <= _WORTH:
                    found.append((round(cycles, 3), accumulators, (filters, vectors, rows)))
    return min(found, key=lambda each: each[:2])[2] if found else None


def _cycles(windows: Windows, filters: int, vectors: int, rows: int) -> float:
    """Estimate the cycles of a multiply-add: two of them, or two loads, start in one."""
    high, wide = windows.taps
    needed = (rows - 1) * windows.strides[0] + high
    load = _LOAD if windows.strides[1] == 1 else _STRIDED_LOAD
    loads = needed * wide * vectors * load + high * wide * filters * rows * _SCALAR
    wanted = filters * vectors * rows * high * wide
    in_flight = max(filters * vectors * rows, IN_FLIGHT) / (filters * vectors * rows)
    # the last block of a row, and of a plane, overlaps the one before
    again = (
        -(-windows.vectors // vectors) * vectors / windows.vectors * -(-windows.height // rows) * rows / windows.height
    )
    return max(wanted * in_flight / 2, loads) * again / wanted
