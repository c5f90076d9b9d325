"""Read a kernel's target: its processor architecture and its features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.target import Target
from tvm.tirx import PrimFunc

_ARCHITECTURES = ("aarch64", "arm", "thumb", "riscv", "x86_64")


def target_of(kernel: PrimFunc) -> Target | None:
    """Return the target of a kernel; None for one without."""
    return kernel.attrs["target"] if kernel.attrs and "target" in kernel.attrs else None


def target_attributes(kernel: PrimFunc) -> Mapping[str, Any]:
    """Return the attributes of a kernel's target; none without a target."""
    target = target_of(kernel)
    return {} if target is None else target.attrs


def triple_of(kernel: PrimFunc) -> str:
    """Return LLVM's triple of a kernel's target; empty without one."""
    return str(target_attributes(kernel).get("mtriple", ""))


def features_of(kernel: PrimFunc) -> list[str]:
    """List the features of a kernel's target, such as `+dsp`."""
    return [str(each) for each in target_attributes(kernel).get("mattr", ())]


def architecture_of(kernel: PrimFunc) -> str | None:
    """Return `aarch64`, `arm`, `thumb`, `riscv` or `x86_64`; None for others and kernels without a target."""
    triple = triple_of(kernel)
    return next((name for name in _ARCHITECTURES if triple.startswith(name)), None)
