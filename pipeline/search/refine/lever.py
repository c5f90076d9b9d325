"""What a lever on the arena of a winner led to, as search.json keeps it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lever:
    """The arena in bytes that a lever leads to, on top of those before it, with its passes on the program.

    `extra_compute` is what is run again, as a fraction of the arithmetic there is.
    """

    lever: str
    arena: int
    extra_compute: float
    passes: tuple[str, ...]
