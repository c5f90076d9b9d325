"""`fuse-operators`: fuse kernels by TVM's rules and, optionally, into reductions."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .fusion_pass import FusionPass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from ..base import ModulePass

#: consumers a kernel may be fused into: element-wise kernels (TVM's rule); also poolings with disjoint windows; also
#: reductions of whole axes
OVER = ("element-wise", "pooling", "reduction")


@dataclass(frozen=True)
class FuseOperators(FusionPass):
    """Fuse at most `depth` operators into one kernel (TVM's default is 256).

    `bound_groups` divides groups further. `over` is one of OVER. `keep` are calls kept out of fusion, by their number
    among the kernel calls, joined by `+`.
    """

    name = "fuse-operators"
    summary = "fuse kernels with element-wise neighbours and, by `over`, into poolings or reductions"

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

    def simpler(self) -> Iterable[ModulePass]:
        """Yield variants with one fusion barrier fewer."""
        for call in sorted(self.kept):
            yield replace(self, keep="+".join(map(str, sorted(self.kept - {call}))))

    def group(self, module: IRModule) -> IRModule:
        """Group the calls of each future kernel into a function; `FuseTIR` makes it a kernel."""
        import tvm
        from tvm import relax

        from .bound_groups import bound_groups
        from .fusible_reductions import mark_fusible_reductions
        from .fusion_barriers import insert_fusion_barriers

        # FuseOps does nothing without these patterns, and FuseTIR must follow at once.
        module = relax.transform.AnnotateTIROpPattern()(module)
        if self.keep:
            module = insert_fusion_barriers(module, self.kept)
        if self.over != "element-wise":
            module = mark_fusible_reductions(module, windows_only=self.over == "pooling")
        with tvm.transform.PassContext(opt_level=3, config={"relax.FuseOps.max_depth": self.depth}):
            return bound_groups(relax.transform.FuseOps()(module))
