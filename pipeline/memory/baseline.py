"""Describe the memory cost of a model through TVM's own pipeline, as footprint.json holds it. All sizes are bytes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .footprint import Footprint

_BASELINE = "tvm-default"


@dataclass(frozen=True)
class Baseline:
    """Hold the same model through TVM's own pipeline. `code` is the text and read-only data of its kernels.

    `flash` is weights + code; both are None where the kernels were not built. All sizes are None where TVM's pipeline
    failed: `unavailable` is the reason then, and empty otherwise.
    """

    name: str
    ram: int | None
    flash: int | None
    arena: int | None
    workspace: int | None
    weights: int | None
    code: int | None = field(default=None, kw_only=True)
    kernels: int | None
    sum: int | None
    unavailable: str = field(default="", kw_only=True)

    @classmethod
    def of(cls, footprint: Footprint, code: int | None = None) -> Baseline:
        """Name the footprint of TVM's default, without bound, floor and proof, which TVM lacks."""
        arena, workspace = footprint.arena, footprint.workspace
        found = cls(
            _BASELINE, footprint.ram, None, arena, workspace, footprint.weights, footprint.kernels, footprint.sum
        )
        return found.compiled(code)

    @classmethod
    def missing(cls, reason: str) -> Baseline:
        """Name TVM's default without sizes."""
        return cls(_BASELINE, *[None] * 7, unavailable=reason)

    def compiled(self, code: int | None) -> Baseline:
        """Return the baseline with the bytes of its code; None where its kernels were not built."""
        if code is None or self.weights is None:
            return self
        return replace(self, code=code, flash=self.weights + code)
