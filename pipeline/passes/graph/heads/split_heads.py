"""`split-heads`: compute attention head by head, and add up the heads' shares of the projection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...base import ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


@dataclass(frozen=True)
class SplitHeads(ModulePass):
    """Split a product with constants over heads joined into its features, and all that makes the heads.

        join(head 1, head 2) · W  ─►  head 1 · W₁ + head 2 · W₂

    Keys and values of one head are alive at a time. Heads that are not computed apart from each other stay joined. With
    `late=1`, values of the last two heads, and keys of the last, are projected after the attention, so that they are
    never whole: see late_projection. That takes more arithmetic, so the search tries it on its winner alone.
    """

    name = "split-heads"
    summary = "compute attention head by head: keys and values of one head are alive at a time"

    late: int = 0

    def costlier(self) -> Iterable[ModulePass]:
        """Yield the pass with late projections."""
        return () if self.late else (replace(self, late=1),)

    def apply(self, module: IRModule) -> IRModule:
        from .divide_heads import divide_heads

        return divide_heads(module, bool(self.late))
