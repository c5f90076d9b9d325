"""Forms of operators: a function for each, which draws operands and attributes that its schema allows."""

from __future__ import annotations

from collections.abc import Callable

from ..draw import Draw
from . import elementwise, moves, sums, windows

TABLE: dict[str, Callable[[Draw], None]] = elementwise.TABLE | moves.TABLE | sums.TABLE | windows.TABLE
