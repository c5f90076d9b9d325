"""Compare the memory of a model with budgets and capacities. All sizes are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Limits the deployer sets on a target, in bytes; None: no limit."""

    ram: int | None = None
    flash: int | None = None


@dataclass(frozen=True)
class RegionUse:
    """Hold the bytes `used` of a memory of `size` bytes; a budget may allow `room` of them.

    `kind` is "ram" or "flash". Data with a first content count in both: there they are stored, and copied from here.
    """

    name: str
    kind: str
    used: int
    size: int
    room: int | None = None

    @property
    def limit(self) -> int:
        """Return the bytes that may be used."""
        return self.size if self.room is None else min(self.room, self.size)

    @property
    def fits(self) -> bool:
        """Return whether the used bytes are within budget and size."""
        return self.used <= self.limit


def telling(regions: Sequence[RegionUse]) -> tuple[RegionUse, ...]:
    """Return the regions that say more than `ram` and `flash` do: those with a budget, or one of several of their kind."""
    kinds = [region.kind for region in regions]
    return tuple(region for region in regions if region.room is not None or kinds.count(region.kind) > 1)


def fits(ram: int, flash: int, budget: Budget, capacity_ram: int, capacity_flash: int) -> bool:
    """Return whether `ram` and `flash` are within the budget, or else within the target's capacity."""
    ram_limit = capacity_ram if budget.ram is None else budget.ram
    flash_limit = capacity_flash if budget.flash is None else budget.flash
    return ram <= ram_limit and flash <= flash_limit
