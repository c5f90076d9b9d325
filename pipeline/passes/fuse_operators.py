"""`fuse-operators`: TVM's fusion of kernels into larger ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .base import Level, ModulePass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from .base import Pass


@dataclass(frozen=True)
class FuseOperators(ModulePass):
    """At most `depth` operators end up in one kernel (TVM's default is 256)."""

    name = "fuse-operators"
    summary = "fuses kernels with the element-wise ones around them, as TVM does"
    levels = frozenset({Level.KERNELS})

    depth: int = 256

    def apply(self, module: IRModule) -> IRModule:
        from tvm import relax

        return relax.transform.FuseTIR()(self.group(module))

    def group(self, module: IRModule) -> IRModule:
        """The module with what belongs together made a function of its own, not yet a kernel."""
        import tvm
        from tvm import relax

        with tvm.transform.PassContext(opt_level=3, config={"relax.FuseOps.max_depth": self.depth}):
            # FuseOps does nothing without the patterns of the pass before it, and FuseTIR must follow at once.
            return tvm.transform.Sequential([relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps()])(module)

    @classmethod
    def instances(cls, module: IRModule) -> Iterable[Pass]:
        return (cls(), cls(depth=2), cls(depth=4))
