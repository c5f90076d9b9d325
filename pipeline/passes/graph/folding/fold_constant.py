"""`fold-constant`: run kernels that read only constants, and store their results as weights.

As TVM's FoldConstant, which compiles and loads every folded call by itself (0.3–7.5 s on real models): here simple
kernels are computed by numpy, and others compiled once for all graphs of a search. Items of a folded tuple are folded
on; TVM leaves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...base import Level, ModulePass

if TYPE_CHECKING:
    from tvm.ir import IRModule


@dataclass(frozen=True)
class FoldConstant(ModulePass):
    """Fold constant kernel calls.

    `grow=0` keeps calls with results larger than their operands (a broadcast, a constant fill).
    """

    name = "fold-constant"
    summary = "fold kernels of constants into weights"
    levels = frozenset({Level.KERNELS})

    grow: int = 1

    def apply(self, module: IRModule) -> IRModule:
        from .constant_folder import fold_constants

        return fold_constants(module, may_grow=bool(self.grow))
