"""Ram against latency: what a search tried for less ram, and what a run of each takes.

A point is on the front if no other needs less of one and no more of the other.
"""

from __future__ import annotations

from collections.abc import Sequence as Ordered
from dataclasses import dataclass

from ..support.latency_limit import LatencyLimit


@dataclass(frozen=True)
class Point:
    """A sequence's specs, by which lever it was reached, its ram in bytes, what it runs again as a fraction of the
    arithmetic there is, and the latency of a run, in the unit of the front."""

    lever: str
    passes: tuple[str, ...]
    ram: int
    extra_compute: float
    latency: float


@dataclass(frozen=True)
class Front:
    """The points that were tried, the least ram first. `unit` is `ms`, `instructions` that an emulator executes, or
    `arithmetic`: what there is to compute, relative to the whole kernels, where a run can be neither timed nor counted.

    `limit` is what was asked for, and `most` the same in `unit`. `chosen` is the number of the point with the least ram
    that is within the limit, or of the fastest one, where none is: `within` is false then.
    """

    unit: str
    limit: str
    most: float
    points: tuple[Point, ...]
    pareto: tuple[int, ...]
    chosen: int
    within: bool


def front(unit: str, limit: LatencyLimit, points: Ordered[Point], reference: float) -> Front:
    """`points` under a limit, a ratio of which is one of `reference`."""
    ordered = tuple(sorted(points, key=lambda point: (point.ram, point.latency)))
    most = limit.milliseconds if limit.milliseconds is not None else limit.ratio * reference
    fitting = [number for number, point in enumerate(ordered) if point.latency <= most]
    fastest = min(range(len(ordered)), key=lambda number: ordered[number].latency)
    return Front(unit, str(limit), most, ordered, pareto(ordered), (fitting or [fastest])[0], bool(fitting))


def pareto(points: Ordered[Point]) -> tuple[int, ...]:
    """The numbers of the points, the least ram first, than which no other has less ram and no more latency or the other
    way round."""
    found: list[int] = []
    for number, point in enumerate(points):
        if not found or point.latency < points[found[-1]].latency:
            found.append(number)
    return tuple(found)
