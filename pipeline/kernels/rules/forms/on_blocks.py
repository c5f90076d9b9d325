"""Make a rewrite of the blocks of an inlined kernel one of any unscheduled kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from tvm.s_tir import SBlock
from tvm.tirx import PrimFunc

from ....tir.index_grid import NoMatch
from ....tir.inlining import inlined
from ....tir.loop_nests import blocks_of

#: rewrite a kernel by its blocks; None if nothing changes
BlocksRewrite = Callable[[PrimFunc, Sequence[SBlock]], PrimFunc | None]


def on_blocks(rewrite: BlocksRewrite) -> Callable[[PrimFunc], PrimFunc]:
    """Inline a kernel before its rewrite; return the kernel itself if nothing changes, or for another form."""

    @wraps(rewrite)
    def rewritten(kernel: PrimFunc) -> PrimFunc:
        try:
            flat = inlined(kernel)
            blocks = blocks_of(flat)
        except NoMatch:
            return kernel
        found = rewrite(flat, blocks)
        return kernel if found is None else found

    return rewritten
