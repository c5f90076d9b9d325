"""`legalize`: from operators to kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Level, ModulePass
from .host import HOST

if TYPE_CHECKING:
    from tvm.ir import IRModule


class Legalize(ModulePass):
    name = "legalize"
    summary = "makes every operator a call of a kernel"
    levels = frozenset({Level.GRAPH})

    def apply(self, module: IRModule) -> IRModule:
        import tvm
        from tvm import relax
        from tvm.relax.backend.cpu_generic import pipeline

        target = tvm.target.Target(HOST)
        with target:
            return tvm.transform.Sequential([*pipeline.library_dispatch_passes(target), relax.transform.LegalizeOps()])(
                module
            )

    def level_after(self, level: Level) -> Level:
        return Level.KERNELS
