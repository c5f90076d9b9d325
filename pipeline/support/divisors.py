"""List the sizes that divide an extent."""

from __future__ import annotations


def divisors(extent: int, largest: int) -> list[int]:
    """List the divisors of `extent` up to `largest`, ascending."""
    return [size for size in range(1, min(extent, largest) + 1) if extent % size == 0]
