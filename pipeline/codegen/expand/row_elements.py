"""Load elements of a row (tir/operators/row_element.py) as the vectors of all the row, shuffled with 0.

    x[2 l - 1] for l in 0:8, of 14    ─►    x[0:8] and x[6:14], their odd places after a 0

All taps of a window share these loads. Nothing outside the row is read.

    moved(x[0:8], 2)    ─►    0 0 x[0:6]

A row of a window that begins in padding is a row that begins later, moved.
"""

from __future__ import annotations

from tvm.ir import Call, Expr
from tvm.tirx import Broadcast, PrimFunc, Ramp

from ...tir.operators.row_element import MOVED, ROW_ELEMENT
from ...tir.switches import switchable
from .shuffle import expand_operators, load_lanes, take, take_or_zero


@switchable
def expand_row_elements(kernel: PrimFunc) -> PrimFunc:
    """Expand the operators in a lowered, vectorised kernel."""
    return expand_operators(kernel, {ROW_ELEMENT: _shuffle, MOVED: _move})


def _move(call: Call) -> Expr:
    vector, by = call.args
    assert isinstance(by, Broadcast), "the loop over the lanes is vectorised"
    lanes, before = vector.ty.dtype.lanes, int(by.value)
    return take_or_zero(vector, (lane - before if 0 <= lane - before < lanes else None for lane in range(lanes)))


def _shuffle(call: Call) -> Expr:
    first, _, place, extent = call.args
    assert isinstance(first, Broadcast) and isinstance(place, Ramp) and isinstance(extent, Broadcast), (
        "the loop is vectorised"
    )
    lanes, width = call.ty.dtype.lanes, int(extent.value)
    places = [int(place.base) + lane * int(place.stride) for lane in range(lanes)]
    inside = [0 <= at < width for at in places]
    short, starts = _starts(lanes, width)
    row: list[Expr] = [load_lanes(first.value, first.value.indices[0] + start, short) for start in starts]
    # the last vector begins with elements of the one before
    spare, again = (len(starts) - 1) * short, len(starts) * short - width
    joined = len(starts) * short <= lanes
    if joined:
        row = [take(row, range(len(starts) * short))]
        if again:  # in their places 0, once for all taps
            row = [_clear(row[0], [not spare <= lane < spare + again for lane in range(len(starts) * short)])]

    def lane_of(at: int) -> int:
        if joined and again and not 0 <= at < width:
            return spare
        kept = min(max(at, 0), width - 1)
        return kept + again if kept >= spare else kept

    found = take(row, map(lane_of, places))
    return found if all(inside) or (joined and again) else _clear(found, inside)


def _starts(lanes: int, width: int) -> tuple[int, list[int]]:
    """Return the lanes of the vectors that load a row of `width` elements, and their starts: the last one overlaps."""
    while lanes > width:
        lanes //= 2
    return lanes, [*range(0, width - lanes, lanes), width - lanes]


def _clear(vector: Expr, kept: list[bool]) -> Expr:
    """Return a vector with 0 in the lanes that are not kept."""
    return take_or_zero(vector, (lane if keep else None for lane, keep in enumerate(kept)))
