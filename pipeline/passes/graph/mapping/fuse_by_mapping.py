"""`fuse-by-mapping`: fuse kernels by the mapping types of their operands, along the plan of least cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..fusion_pass import FusionPass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from ...base import Pass

#: least peak, then time; or the reverse
OBJECTIVES = ("ram", "latency")


@dataclass(frozen=True)
class FuseByMapping(FusionPass):
    """Fuse wherever an index map will do: reductions with their readers, transposes, slices and the like with neighbours.

    `objective` is one of OBJECTIVES. A kernel does at most `redo` percent of its arithmetic again. One that no rule takes
    whole would be divided again, and is not made.
    """

    name = "fuse-by-mapping"
    summary = "fuse kernels by how their elements map, as a cost model plans it, also across reductions and index maps"

    objective: str = "ram"
    redo: int = 100

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective is '{self.objective}', not one of {', '.join(OBJECTIVES)}")

    @classmethod
    def instances(cls) -> Iterable[Pass]:
        """Return both objectives, with and without arithmetic done again."""
        return tuple(cls(objective, redo) for objective in OBJECTIVES for redo in (100, 0))

    def group(self, module: IRModule) -> IRModule:
        """Group the calls of each future kernel into a function; `FuseTIR` makes it a kernel."""
        from ..bound_groups import bound_groups
        from .kernel_calls import read_calls, write_groups
        from .stored_plan import existing_values

        called = read_calls(module)
        if called is None:
            return module
        exist = existing_values(module, called, by_peak=self.objective == "ram", redo=self.redo / 100)
        if exist >= called.bindings.keys():
            return module
        return bound_groups(write_groups(module, called, exist))
