"""Find a name that nothing has."""

from __future__ import annotations

from collections.abc import Container


def free_name(name: str, taken: Container[str]) -> str:
    """Append underscores to `name` until it is none of `taken`."""
    while name in taken:
        name += "_"
    return name
