"""One refinement step of a winner, as stored in search.json."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lever:
    """Refinement step, on top of the earlier ones.

    `arena` is in bytes, `passes` are the specs of the program passes. `extra_compute` is recomputation as a fraction of
    the original arithmetic.
    """

    lever: str
    arena: int
    extra_compute: float
    passes: tuple[str, ...]
