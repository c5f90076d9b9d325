"""Read a kernel's processor architecture from its target's triple."""

from __future__ import annotations

from tvm.tirx import PrimFunc

_ARCHITECTURES = ("aarch64", "arm", "thumb", "riscv", "x86_64")


def architecture_of(kernel: PrimFunc) -> str | None:
    """Return `aarch64`, `arm`, `thumb`, `riscv` or `x86_64`; None for others and kernels without a target."""
    target = kernel.attrs["target"] if kernel.attrs and "target" in kernel.attrs else None
    triple = str(target.attrs.get("mtriple", "")) if target is not None else ""
    return next((name for name in _ARCHITECTURES if triple.startswith(name)), None)
