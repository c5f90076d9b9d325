"""Estimate the sizes of a library on a target by those on another that is like it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..targets import Target
from .verdict import Sizes

#: bytes of stack: 72 to 588 were measured
STACK = 400
#: bytes of .data besides the arena: pointers, in flash too
DATA = 12
#: bytes of code, relative to that of Cortex-M4: of six models (riscv32 0.7 to 3.4, x86_64 0.4 to 1.9), of one (aarch64),
#: and taken like those (arm, riscv64)
_RATIOS = {"thumb": 1.0, "riscv32": 1.5, "x86_64": 1.1, "aarch64": 1.3, "arm": 1.3, "riscv64": 1.5}
#: cycles of a run, relative to those of the model of cycles: see benchmarks/results/board_time.md
CYCLES = {
    "cortex-m0plus": 1.9, "cortex-m4": 1.45, "cortex-m33": 1.4, "cortex-m55": 1.1, "cortex-m7": 0.8, "generic-rv32": 1.1,
}  # fmt: skip


@dataclass(frozen=True)
class Known:
    """Sizes of a plan on a target, which serve as a base for others."""

    target: Target
    sizes: Sizes

    def stack_on(self, target: Target) -> int:
        """Estimate the stack on another target."""
        return (self.sizes.stack or STACK) if target.bare else 0


def carry(base: Known, target: Target) -> Sizes:
    """Estimate the sizes on a target by those on another."""
    weights = 0 if target.weights == "in-place" else base.sizes.weights
    return replace(
        base.sizes, code=scale_code(base, target), stack=base.stack_on(target), data=DATA if target.bare else 0,
        weights_in_ram=weights, near=True, cycles=_cycles_like(base, target),
    )  # fmt: skip


def scale_code(base: Known, target: Target) -> int:
    """Estimate the code on a target by that on another."""
    return round(base.sizes.code * code_ratio(base.target, target))


def code_ratio(base: Target, target: Target) -> float:
    """Return the usual code on a target, relative to that on another."""
    most = max(_RATIOS.values())
    return _RATIOS.get(target.architecture, most) / _RATIOS.get(base.architecture, most)


def _cycles_like(base: Known, target: Target) -> float | None:
    """Return the cycles of a run on a board with the machine of another; None for any other."""
    if base.sizes.cycles is None or base.target.machine != target.machine:
        return None
    return base.sizes.cycles * CYCLES.get(target.cpu, 1.0) / CYCLES.get(base.target.cpu, 1.0)
