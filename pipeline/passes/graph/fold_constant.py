"""`fold-constant`: kernels that read only constants are run now, and their results stored as weights.

As TVM's FoldConstant, which compiles and loads every folded call by itself (0.3–7.5 s on real models): here simple
kernels are computed by numpy, and others compiled once for all the graphs of a search. What is taken out of a tuple that
is folded is folded on, which TVM's does not do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import Level, ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


@dataclass(frozen=True)
class FoldConstant(ModulePass):
    """`grow=0` leaves alone a call whose result is larger than what it reads (a broadcast, a constant fill)."""

    name = "fold-constant"
    summary = "computes now what depends on constants only"
    levels = frozenset({Level.KERNELS})

    grow: int = 1

    def apply(self, module: IRModule) -> IRModule:
        from .constant_folder import fold_constants

        return fold_constants(module, may_grow=bool(self.grow))
