"""Choose among candidates by ram, flash and cycles: the fastest, the smallest, or the least ram within reason.

fastest-within-budget   the fastest that fits
flash                   the least flash that fits; else the least that ram holds
ram                     the least ram that fits, of those within max_slowdown × the fastest plan of whole kernels;
                        else the fastest that fits; else the least ram within max_slowdown
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Ordered
from dataclasses import dataclass, replace

from .settings import FLASH, RAM, Aim

#: costs that count as equal, as a fraction, so that less ram decides: the models cannot tell less apart
CYCLE_MARGIN = 0.02
FLASH_MARGIN = 0.01


@dataclass(frozen=True)
class CostPoint:
    """Hold a candidate's ram, weights and flash in bytes, and its cycles by the model of `targets/cycles.py`.

    `lever` is the step that led to it, `passes` are its specs, `extra_compute` is recomputation as a fraction. `flash`
    is weights + code, None if the code was not estimated; it is `most_flash` at most. `whole`: no kernel runs in parts.
    """

    lever: str
    passes: tuple[str, ...]
    ram: int
    weights: int
    cycles: int
    extra_compute: float
    most_flash: int
    whole: bool
    flash: int | None = None


@dataclass(frozen=True)
class Tradeoff:
    """Candidates on the front of the objective's cost and ram, by increasing ram.

    `points` hold the least ram, all on the front, and the chosen one, by its number. `ram` and `flash` are the limits in
    bytes, `stack` what they leave for the stack besides. `within` is false if no candidate fits: the least ram is chosen then, or the least flash that ram holds if flash is minimised. `max_slowdown` limits the cycles of the
    objective RAM, relative to `whole`, those of the fastest plan of whole kernels; None: there is no limit, no such plan.
    """

    objective: str
    ram: int
    flash: int
    points: tuple[CostPoint, ...]
    chosen: int
    within: bool
    max_slowdown: float | None = None
    whole: int | None = None
    stack: int = 0


def choose(
    aim: Aim, points: Ordered[CostPoint], flash_of: Callable[[int], int], whole: int | None = None
) -> tuple[int, Tradeoff]:
    """Return the number of the chosen point, and the front.

    The first of `points` has the least ram. `flash_of` estimates the flash of a point in bytes. It is asked only where
    it matters: for every point if flash is minimised; else, from the best on, up to the first that fits. Of points
    whose costs differ by less than the model's margin, the one of least ram is chosen. `whole` are the cycles of the fastest
    whole kernels, where they are not among the points.
    """
    known, whole = list(points), whole or fastest_whole(points)
    if aim.objective == FLASH:
        known = [replace(point, flash=flash_of(number)) for number, point in enumerate(known)]

    def cost(number: int) -> int:
        return known[number].flash or 0 if aim.objective == FLASH else known[number].cycles

    def fits(number: int) -> bool:
        point = known[number]
        if point.ram > aim.ram or point.weights > aim.flash:
            return False
        if point.flash is None and point.most_flash > aim.flash:
            point = known[number] = replace(point, flash=flash_of(number))
        return point.flash is None or point.flash <= aim.flash

    by_ram = sorted(range(len(known)), key=lambda number: (known[number].ram, number))
    by_cost = sorted(by_ram, key=cost)
    limit = math.inf if aim.max_slowdown is None or whole is None else aim.max_slowdown * whole
    quick = [number for number in by_ram if known[number].cycles <= limit]
    best = next((number for number in (quick if aim.objective == RAM else by_cost) if fits(number)), None)
    if aim.objective == RAM and best is None:
        best = next((number for number in by_cost if fits(number)), None)
    chosen = quick[0] if best is None else best
    if best is None and aim.objective == FLASH:
        chosen = next((number for number in by_cost if known[number].ram <= aim.ram), chosen)
    if best is not None and not (aim.objective == RAM and best in quick):
        margin = FLASH_MARGIN if aim.objective == FLASH else CYCLE_MARGIN
        chosen = next(number for number in by_ram if cost(number) <= (1 + margin) * cost(best) and fits(number))
    shown = sorted({0, chosen, *_front(known, cost)}, key=lambda number: (known[number].ram, cost(number), number))
    kept = tuple(known[number] for number in shown)
    return chosen, Tradeoff(
        aim.objective,
        aim.ram,
        aim.flash,
        kept,
        shown.index(chosen),
        best is not None,
        aim.max_slowdown,
        whole,
        aim.stack,
    )


def fastest_whole(points: Iterable[CostPoint]) -> int | None:
    """Return the cycles of the fastest plan whose kernels are whole; None if there is no such plan."""
    return min((point.cycles for point in points if point.whole), default=None)


def most_cycles(aim: Aim, points: Iterable[CostPoint]) -> float:
    """Return the most cycles that an aim allows among `points`."""
    fastest = fastest_whole(points)
    return math.inf if aim.max_slowdown is None or fastest is None else aim.max_slowdown * fastest


def _front(points: Ordered[CostPoint], cost: Callable[[int], int]) -> list[int]:
    """Return the numbers of the Pareto-optimal points."""
    found: list[int] = []
    for number in sorted(range(len(points)), key=lambda number: (points[number].ram, cost(number), number)):
        if not found or cost(number) < cost(found[-1]):
            found.append(number)
    return found
