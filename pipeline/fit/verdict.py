"""Compare predicted sizes with the limits of targets: verdicts, the smallest target that fits, the next smaller one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..memory.footprint import Budget
from ..targets import Target


@dataclass(frozen=True)
class Sizes:
    """Bytes of a library on a target, by part; `data` is in ram and, without an operating system, in flash too.

    `stack` is predicted only without an operating system. `weights_in_ram` are those that the target copies. `near`: the sizes
    of a target like it, whose kernels are not its own. `cycles` are those of a run by the model of cycles, None where nothing was scheduled.
    """

    arena: int
    workspace: int
    weights: int
    code: int
    stack: int = 0
    data: int = 0
    weights_in_ram: int = 0
    near: bool = False
    cycles: float | None = None

    @property
    def ram(self) -> int:
        """Return the bytes of ram, as `footprint.json` counts them."""
        return self.arena + self.workspace + self.stack + self.data + self.weights_in_ram

    @property
    def flash(self) -> int:
        """Return the bytes of flash, as `footprint.json` counts them."""
        return self.weights + self.code


@dataclass(frozen=True)
class TargetLimits:
    """Most bytes of ram and flash that a library may take on a target: the budget, else the capacity."""

    ram: int
    flash: int

    @classmethod
    def of(cls, target: Target, budget: Budget) -> TargetLimits:
        """Return the limits of a target with a budget."""
        return cls(
            target.ram if budget.ram is None else budget.ram, target.flash if budget.flash is None else budget.flash
        )

    def lacking(self, ram: int, flash: int) -> dict[str, int]:
        """Return the bytes that exceed a limit, by "ram" and "flash"; empty if both hold."""
        over = {"ram": ram - self.ram, "flash": flash - self.flash}
        return {memory: nbytes for memory, nbytes in over.items() if nbytes > 0}


@dataclass(frozen=True)
class FitVerdict:
    """Predicted sizes of a model next to the limits of a target; `refused` says why it cannot be compiled for it."""

    target: str
    sizes: Sizes
    limits: TargetLimits
    refused: str = ""
    mhz: int | None = None

    @property
    def milliseconds(self) -> float | None:
        """Return the predicted time of a run on a board; None without a clock, or predicted cycles."""
        return None if self.mhz is None or self.sizes.cycles is None else self.sizes.cycles / self.mhz / 1e3

    @property
    def lacking(self) -> dict[str, int]:
        """Return the bytes that exceed a limit, by "ram" and "flash"; empty if the model fits."""
        return self.limits.lacking(self.sizes.ram, self.sizes.flash)

    @property
    def fits(self) -> bool:
        """Return whether it compiles, and both memories hold it."""
        return not self.lacking and not self.refused

    def is_close(self, ram: float, flash: float) -> bool:
        """Return whether sizes wrong by these parts of them might turn the verdict."""
        smaller, larger = (
            (1 + sign * ram) * self.sizes.ram <= self.limits.ram
            and (1 + sign * flash) * self.sizes.flash <= self.limits.flash
            for sign in (-1, 1)
        )
        return smaller != larger

    def to_json(self) -> dict:
        """Return the object that `passfit fit --json` prints for a target."""
        free = {"ram": self.limits.ram - self.sizes.ram, "flash": self.limits.flash - self.sizes.flash}
        found = {"target": self.target, "ram": self.sizes.ram, "flash": self.sizes.flash, "fits": self.fits}
        found["milliseconds"] = self.milliseconds
        return found | {
            "refused": self.refused,
            "free": free,
            "limits": asdict(self.limits),
            "parts": asdict(self.sizes),
        }


def smallest_first(verdicts: Iterable[FitVerdict]) -> list[FitVerdict]:
    """Sort verdicts by ram limit, then by flash limit, then by name."""
    return sorted(verdicts, key=lambda each: (each.limits.ram, each.limits.flash, each.target))


def smallest_that_fits(verdicts: Iterable[FitVerdict]) -> FitVerdict | None:
    """Return the smallest target that holds the model; None if none does."""
    return next((each for each in smallest_first(verdicts) if each.fits), None)


def next_smaller(verdicts: Iterable[FitVerdict]) -> FitVerdict | None:
    """Return the largest target below the smallest that fits, of all if none fits, that lacks memory; None without any."""
    before: FitVerdict | None = None
    for each in smallest_first(verdicts):
        if each.fits:
            break
        before = before if each.refused else each
    return before
