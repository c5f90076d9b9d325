"""`cut-sums`: kernels made two where a part of them keeps the rest from being split."""

from __future__ import annotations

from dataclasses import dataclass

from ..base import Level, Pass


@dataclass(frozen=True)
class CutSums(Pass):
    """What every row of a kernel's result needs whole becomes a kernel of its own; see kernels.rewrite.split_reductions."""

    name = "cut-sums"
    summary = "makes two of a kernel where each row of its result needs the same sums, so that it can be split"
    levels = frozenset({Level.LOWERED})
