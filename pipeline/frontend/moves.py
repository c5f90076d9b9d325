"""Name the operators that only move elements, and follow an axis through them."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: operators that keep all elements in their order
VIEWS = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
#: operators whose result holds elements of their first operand, as they are
MOVES = VIEWS | frozenset(
    "DepthToSpace Expand Gather GatherElements GatherND Identity Slice SpaceToDepth Split Tile Transpose".split()
)


def follow_axis(
    operator: str, axis: int, before: Sequence[int] | None, after: Sequence[int] | None, order: Sequence[int] | None
) -> int | None:
    """Return the axis of the result that holds `axis` of the operand; None if no axis does.

    `before` and `after` are the shapes, as far as they are known, `order` is that of a Transpose, if it has one.
    """
    if before is None or after is None:
        return None
    if operator == "Identity":
        return axis
    if operator == "Transpose":
        return list(order or range(len(before))[::-1]).index(axis)
    if operator not in VIEWS:
        return None
    outer = math.prod(before[:axis])
    places = (place for place, size in enumerate(after) if size == before[axis] and math.prod(after[:place]) == outer)
    return next(places, None)
