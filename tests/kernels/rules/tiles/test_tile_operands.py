"""Bytes that operands of a tile move: those their axes reach."""

from __future__ import annotations

import pytest
from tvm.ir import Var
from tvm.tirx import decl_buffer, floormod
from tvm.tirx import min as least

from passfit.kernels.rules.tiles.tile_operands import moved_bytes

Y, C, TAP, FIRST = (Var(name, "int64") for name in ("y", "c", "tap", "first"))
EXTENTS = {C: 64, Y: 8, TAP: 3}


@pytest.mark.tvm
@pytest.mark.parametrize(
    ("row", "rows"),
    [
        (Y, 8),
        (Y + FIRST + TAP, 10),
        (2 * Y + 4 * TAP + FIRST, 23),
        (least(Y, 3), 100),
        (floormod(Y + TAP, 4), 100),
        (20 * Y, 100),
        (FIRST, 1),
    ],
)
def test_a_window_moves_the_rows_it_reaches(row, rows: int) -> None:
    """All rows where it is not known how far the index goes, and no more than there are."""
    buffer = decl_buffer((64, 100), "float32")
    assert moved_bytes(buffer[C, row], EXTENTS) == 64 * rows * 4
