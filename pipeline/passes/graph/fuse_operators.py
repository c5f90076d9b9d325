"""`fuse-operators`: TVM's fusion of kernels into larger ones, and what lies just beyond it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..base import Level, ModulePass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from ..base import Pass

#: what a kernel may be computed inside of: element-wise kernels (TVM's rule); also poolings whose windows do not
#: overlap; also reductions of whole axes
OVER = ("element-wise", "pooling", "reduction")


@dataclass(frozen=True)
class FuseOperators(ModulePass):
    """At most `depth` operators end up in one kernel (TVM's default is 256), and as few as `bounded_groups` says; `over` is one of OVER; `keep` are calls
    that are left alone, by their number among the kernel calls, joined by `+`."""

    name = "fuse-operators"
    summary = "fuses kernels with the element-wise ones around them, and those that read them once"
    levels = frozenset({Level.KERNELS})

    depth: int = 256
    over: str = "element-wise"
    keep: str = ""

    def __post_init__(self) -> None:
        if self.over not in OVER:
            raise ValueError(f"over is '{self.over}', not one of {', '.join(OVER)}")
        if not re.fullmatch(r"(\d+(\+\d+)*)?", self.keep):
            raise ValueError(f"keep is '{self.keep}', not numbers joined by +")

    @property
    def kept(self) -> frozenset[int]:
        return frozenset(int(number) for number in self.keep.split("+") if number)

    def simpler(self) -> Iterable[Pass]:
        """With one call fewer kept apart."""
        for call in sorted(self.kept):
            yield replace(self, keep="+".join(map(str, sorted(self.kept - {call}))))

    def apply(self, module: IRModule) -> IRModule:
        from tvm import relax

        return relax.transform.FuseTIR()(self.group(module))

    def group(self, module: IRModule) -> IRModule:
        """The module with what belongs together made a function of its own, not yet a kernel."""
        import tvm
        from tvm import relax

        from .bound_groups import bounded_groups
        from .fusible_reductions import mark_fusible_reductions
        from .fusion_barriers import insert_fusion_barriers

        # FuseOps does nothing without these patterns, and FuseTIR must follow at once.
        module = relax.transform.AnnotateTIROpPattern()(module)
        if self.keep:
            module = insert_fusion_barriers(module, self.kept)
        if self.over != "element-wise":
            module = mark_fusible_reductions(module, windows_only=self.over == "pooling")
        with tvm.transform.PassContext(opt_level=3, config={"relax.FuseOps.max_depth": self.depth}):
            return bounded_groups(relax.transform.FuseOps()(module))
