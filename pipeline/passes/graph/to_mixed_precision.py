"""`to-mixed-precision`: products and convolutions, and what lies between them, in float16. Lossy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..base import Level, ModulePass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from ..base import Pass

#: what products and convolutions are added up in
ACCUMULATORS = ("float16", "float32")


@dataclass(frozen=True)
class ToMixedPrecision(ModulePass):
    """Weights and activations take half the bytes; inputs and outputs keep their dtype. `sum` is one of ACCUMULATORS."""

    name = "to-mixed-precision"
    summary = "computes products and convolutions, and what lies between them, in float16"
    levels = frozenset({Level.GRAPH})
    lossy: ClassVar[bool] = True

    sum: str = "float32"

    def __post_init__(self) -> None:
        if self.sum not in ACCUMULATORS:
            raise ValueError(f"sum is '{self.sum}', not one of {', '.join(ACCUMULATORS)}")

    @classmethod
    def instances(cls) -> Iterable[Pass]:
        return tuple(cls(sum=each) for each in ACCUMULATORS)

    def apply(self, module: IRModule) -> IRModule:
        from tvm import relax

        return relax.transform.ToMixedPrecision(out_dtype=self.sum)(module)
