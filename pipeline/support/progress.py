"""Report progress of long steps to a caller."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receive progress: the task, the amount done, the total (0: not known), and the best so far."""

    def __call__(self, what: str, done: int = 0, total: int = 0, found: str = "") -> None: ...


def silent(what: str, done: int = 0, total: int = 0, found: str = "") -> None:
    """Show no progress."""
