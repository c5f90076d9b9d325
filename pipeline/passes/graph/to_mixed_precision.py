"""`to-mixed-precision`: compute products, convolutions and operators between them in float16. Lossy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..base import ModulePass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tvm.ir import IRModule

    from ..base import Pass

#: accumulator dtypes of products and convolutions
ACCUMULATORS = ("float16", "float32")


@dataclass(frozen=True)
class ToMixedPrecision(ModulePass):
    """Halve the bytes of weights and activations; inputs and outputs keep their dtype.

    `sum` is one of ACCUMULATORS.
    """

    name = "to-mixed-precision"
    summary = "compute products, convolutions and the operators between them in float16"
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
