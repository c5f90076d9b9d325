"""Report progress of long steps to a caller."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Be told what is being done, how much of it is done, how much there is (0: not known), and the best so far."""

    def __call__(self, what: str, done: int = 0, total: int = 0, found: str = "") -> None: ...


def silent(what: str, done: int = 0, total: int = 0, found: str = "") -> None:
    """Show no progress."""
