"""Choose among candidates by ram, flash and cycles: the fastest, or the smallest, within limits."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace

from .settings import FASTEST, Aim

#: costs that count as equal, as a fraction, so that less ram decides: the models cannot tell less apart
CYCLE_MARGIN = 0.02
FLASH_MARGIN = 0.01


@dataclass(frozen=True)
class CostPoint:
    """Hold a candidate's ram, weights and flash in bytes, and its cycles by the model of `targets/cycles.py`.

    `lever` is the step that led to it, `passes` are its specs, `extra_compute` is recomputation as a fraction. `flash`
    is weights + code, None if the code was not estimated; it is `most_flash` at most.
    """

    lever: str
    passes: tuple[str, ...]
    ram: int
    weights: int
    cycles: int
    extra_compute: float
    most_flash: int
    flash: int | None = None


@dataclass(frozen=True)
class Tradeoff:
    """Candidates on the front of the objective's cost and ram, by increasing ram.

    `points` hold the least ram, all on the front, and the chosen one, by its number. `ram` and `flash` are the limits in
    bytes. `within` is false if no candidate fits: the least ram is chosen then.
    """

    objective: str
    ram: int
    flash: int
    points: tuple[CostPoint, ...]
    chosen: int
    within: bool


def choose(aim: Aim, points: Ordered[CostPoint], flash_of: Callable[[int], int]) -> tuple[int, Tradeoff]:
    """Return the number of the chosen point, and the front.

    The first of `points` has the least ram. `flash_of` estimates the flash of a point in bytes. It is asked only where
    it matters: for every point if flash is minimised; else, from the fastest on, up to the first that fits. Of points
    whose costs differ by less than the model's margin, the one of least ram is chosen.
    """
    known = list(points)
    if aim.objective != FASTEST:
        known = [replace(point, flash=flash_of(number)) for number, point in enumerate(known)]

    def cost(number: int) -> int:
        return known[number].cycles if aim.objective == FASTEST else known[number].flash or 0

    def fits(number: int) -> bool:
        point = known[number]
        if point.ram > aim.ram or point.weights > aim.flash:
            return False
        if point.flash is None and point.most_flash > aim.flash:
            point = known[number] = replace(point, flash=flash_of(number))
        return point.flash is None or point.flash <= aim.flash

    ranked = sorted(range(len(known)), key=lambda number: (cost(number), known[number].ram, number))
    best = next((number for number in ranked if fits(number)), None)
    chosen = 0
    if best is not None:
        margin = CYCLE_MARGIN if aim.objective == FASTEST else FLASH_MARGIN
        equal = [number for number in ranked if cost(number) <= (1 + margin) * cost(best)]
        chosen = next(number for number in sorted(equal, key=lambda number: known[number].ram) if fits(number))
    shown = sorted({0, chosen, *_front(known, cost)}, key=lambda number: (known[number].ram, cost(number), number))
    kept = tuple(known[number] for number in shown)
    return chosen, Tradeoff(aim.objective, aim.ram, aim.flash, kept, shown.index(chosen), best is not None)


def _front(points: Ordered[CostPoint], cost: Callable[[int], int]) -> list[int]:
    """Return the numbers of the Pareto-optimal points."""
    found: list[int] = []
    for number in sorted(range(len(points)), key=lambda number: (points[number].ram, cost(number), number)):
        if not found or cost(number) < cost(found[-1]):
            found.append(number)
    return found
