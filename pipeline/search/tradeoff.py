"""Choose among candidates by ram, flash and cycles: the fastest, or the smallest, within limits."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace

from .settings import FASTEST, Aim

#: costs that count as equal, as a fraction, so that less ram decides: the model cannot tell less apart
MARGIN = 0.01
#: most bytes of code of any library: a limit of flash this far above the weights needs no estimate
MOST_CODE = 16 << 20


@dataclass(frozen=True)
class CostPoint:
    """Candidate's ram, weights and flash in bytes, and the cycles of a run by the model of `targets/cycles.py`.

    `lever` is the step that led to it, `passes` are its specs, `extra_compute` is recomputation as a fraction. `flash`
    is weights + code, None if the code was not estimated.
    """

    lever: str
    passes: tuple[str, ...]
    ram: int
    weights: int
    cycles: int
    extra_compute: float
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
    it matters: for every point if flash is minimised; else, from the fastest on, up to the first that fits.
    """
    points = list(points)

    def fits(number: int) -> bool:
        point = points[number]
        if point.ram > aim.ram or point.weights > aim.flash:
            return False
        if point.flash is None and point.weights + MOST_CODE > aim.flash:
            point = points[number] = replace(point, flash=flash_of(number))
        return point.flash is None or point.flash <= aim.flash

    if aim.objective != FASTEST:
        points = [replace(point, flash=flash_of(number)) for number, point in enumerate(points)]

    def cost(number: int) -> int:
        point = points[number]
        return point.cycles if aim.objective == FASTEST else point.flash or 0

    ranked = sorted(range(len(points)), key=lambda number: (cost(number), points[number].ram, number))
    best = next((number for number in ranked if fits(number)), None)
    chosen = 0
    if best is not None:
        equal = [number for number in ranked if cost(number) <= (1 + MARGIN) * cost(best)]
        chosen = next(number for number in sorted(equal, key=lambda number: points[number].ram) if fits(number))
    shown = sorted({0, chosen, *_front(points, cost)}, key=lambda number: (points[number].ram, cost(number), number))
    kept = tuple(points[number] for number in shown)
    return chosen, Tradeoff(aim.objective, aim.ram, aim.flash, kept, shown.index(chosen), best is not None)


def _front(points: Ordered[CostPoint], cost: Callable[[int], int]) -> list[int]:
    """Return the numbers of the Pareto-optimal points."""
    found: list[int] = []
    for number in sorted(range(len(points)), key=lambda number: (points[number].ram, cost(number), number)):
        if not found or cost(number) < cost(found[-1]):
            found.append(number)
    return found
