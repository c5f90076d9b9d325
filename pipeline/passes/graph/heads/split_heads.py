"""`split-heads`: compute attention head by head, and add up the heads' shares of the projection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base import ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


class SplitHeads(ModulePass):
    """Split a product with constants over heads joined into its features, and all that makes the heads.

        join(head 1, head 2) · W  ─►  head 1 · W₁ + head 2 · W₂

    Keys and values of one head are alive at a time. Heads that are not computed apart from each other stay joined.
    """

    name = "split-heads"
    summary = "compute attention head by head: keys and values of one head are alive at a time"

    def apply(self, module: IRModule) -> IRModule:
        from .divide_heads import divide_heads

        return divide_heads(module)
