"""Take lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm import tirx
from tvm.ir import Expr


def taken(vectors: Sequence[Expr], places: Iterable[int]) -> Expr:
    """Return a vector of the lanes at `places` of all `vectors`, one after the other."""
    return tirx.Shuffle(list(vectors), [tirx.const(place, "int32") for place in places])
