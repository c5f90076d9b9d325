"""How a kernel can be split, as plain data: what a row of its result needs, and what it can take row by row.

Rows are of any one axis: lines of an image, or its channels.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Follows:
    """An operand whose rows, along its `axis` of `extent`, follow those of the result: row v of the result needs rows
    `low[v]` up to `high[v]`. Those below 0 or from `extent` on are padding, and do not exist."""

    axis: int
    extent: int
    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True)
class Rows:
    """A kernel whose result can be computed row by row, along its `axis` of `extent`.

    `operands` are, by position, those whose rows follow; of the others each row needs all, or they are weights.
    """

    axis: int
    extent: int
    operands: tuple[tuple[int, Follows], ...]

    def follows(self, operand: int) -> Follows | None:
        return dict(self.operands).get(operand)


@dataclass(frozen=True)
class Splits:
    """All ways to split a kernel. `sums` are the operands, by position, and axes of them, whose rows it can take one
    after the other, accumulating; `work` is the number of times its innermost loops run."""

    rows: tuple[Rows, ...]
    sums: tuple[tuple[int, int], ...]
    work: int
