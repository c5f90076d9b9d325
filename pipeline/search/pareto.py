"""Pareto front of ram and latency over the candidates of a search.

A point is on the front if no other needs less of one and no more of the other.
"""

from __future__ import annotations

from collections.abc import Sequence as Ordered
from dataclasses import dataclass

from ..params.latency_limit import LatencyLimit


@dataclass(frozen=True)
class Point:
    """Candidate's ram in bytes and latency per run.

    `lever` is the refinement step that led to it, `passes` are its specs. `extra_compute` is recomputation as a
    fraction of the original arithmetic. `latency` is in the unit of the front.
    """

    lever: str
    passes: tuple[str, ...]
    ram: int
    extra_compute: float
    latency: float


@dataclass(frozen=True)
class Front:
    """Points by increasing ram, under a latency limit.

    `unit` is `ms`, `instructions` executed by an emulator, or `arithmetic`: relative to the whole kernels, used if a
    run can be neither timed nor counted. `limit` is the limit as given, `most` the same in `unit`. `pareto` are the
    numbers of the points on the front. `chosen` is the number of the point of least ram within the limit, or of the
    fastest if none is; `within` is false then.
    """

    unit: str
    limit: str
    most: float
    points: tuple[Point, ...]
    pareto: tuple[int, ...]
    chosen: int
    within: bool


def front(unit: str, limit: LatencyLimit, points: Ordered[Point], reference: float) -> Front:
    """Order `points` and choose one under `limit`; a ratio is relative to `reference`."""
    ordered = tuple(sorted(points, key=lambda point: (point.ram, point.latency)))
    most = limit.milliseconds if limit.milliseconds is not None else limit.ratio * reference
    fitting = [number for number, point in enumerate(ordered) if point.latency <= most]
    fastest = min(range(len(ordered)), key=lambda number: ordered[number].latency)
    return Front(unit, str(limit), most, ordered, pareto(ordered), (fitting or [fastest])[0], bool(fitting))


def pareto(points: Ordered[Point]) -> tuple[int, ...]:
    """Return the numbers of the Pareto-optimal points; `points` are ordered by ram, then latency."""
    found: list[int] = []
    for number, point in enumerate(points):
        if not found or point.latency < points[found[-1]].latency:
            found.append(number)
    return tuple(found)
