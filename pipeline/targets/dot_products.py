"""List instructions that add products of four bytes to each int32: the one place that names one.

The rest comes from a row: a target's `Machine.dots`, the rule that schedules kernels for it (kernels/rules/integer/rows.py), its call in
LLVM (codegen/expand/products.py), and the features for the C compiler.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class DotProduct:
    """Instruction: int32 + w0 · x0 + w1 · x1 + w2 · x2 + w3 · x3, in each lane; weights are int8.

    `values` is the dtype of x, int8 or uint8. `intrinsics` holds LLVM's name by lanes of int32, with features of which it needs one: its
    operands are sums, weights and values, or sums, values and weights if values are unsigned. `cpus` are LLVM's names of processors that have it without
    a feature. `rule` says that NhwcRuns schedules it; others have loops of their own. `zig` says that zig knows the features.
    """

    name: str
    architecture: str
    values: str
    intrinsics: Mapping[int, tuple[str, tuple[str, ...]]]
    cpus: Collection[str] = ()
    rule: bool = True
    zig: bool = True

    @property
    def features(self) -> frozenset[str]:
        """Return the features that switch it on, such as `+dotprod`."""
        return frozenset(f"+{feature}" for _, features in self.intrinsics.values() for feature in features)


DOT_PRODUCTS = [
    DotProduct(
        "vpdpbusd", "x86_64", "uint8",
        {8: ("llvm.x86.avx512.vpdpbusd.256", ("avx512vnni", "avxvnni")), 16: ("llvm.x86.avx512.vpdpbusd.512", ("avx512vnni",))},
        cpus=("cascadelake", "icelake-server", "sapphirerapids", "alderlake", "znver4", "znver5"),
    ),
    DotProduct("sdot", "aarch64", "int8", {4: ("llvm.aarch64.neon.sdot.v4i32.v16i8", ("dotprod",))}, rule=False),
    # two instructions, as assembly for one sum: codegen/bare/arm_dsp.py
    DotProduct("smlad", "thumb", "int8", {1: ("", ("dsp",))}, rule=False),
]  # fmt: skip


def dot_products(architecture: str, cpu: str, features: Collection[str]) -> tuple[str, ...]:
    """Name the instructions of a processor, in words of LLVM."""
    return tuple(
        row.name
        for row in DOT_PRODUCTS
        if row.architecture == architecture and (cpu in row.cpus or not row.features.isdisjoint(features))
    )
