"""`cut-sums`: split a kernel in two at row-invariant sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import LoweredPass

if TYPE_CHECKING:
    from ...kernels.lower.lower import Lowered


@dataclass(frozen=True)
class CutSums(LoweredPass):
    """Compute row-invariant sums in a kernel of their own; see kernels.rewrite.split_reductions."""

    name = "cut-sums"
    summary = "compute sums shared by all rows in a kernel of their own, so that the rest can be split"

    def apply(self, lowered: Lowered) -> Lowered:
        from ...kernels.rewrite.split_reductions import split_reductions

        return split_reductions(lowered)
