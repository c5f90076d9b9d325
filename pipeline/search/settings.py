"""Settings of a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..memory.footprint import Budget
from ..support.latency_limit import LatencyLimit
from ..targets import Target

#: when a search stops by itself
UNTIL = ("minimum", "fits")


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search; see `strategies.trace.Limits` and `evaluate.child.CandidateLimits`.

    `workers` is a number of processes, None: every core, 0: this process only, without limits for candidates.
    `executor` is a Dask cluster to use instead, `dask://HOST:PORT`. The result does not depend on either.

    `evaluations` limits the states evaluated, None: by the size of the graph.

    `until` is one of UNTIL: stop at the first sequence that fits, or search the minimum. `lossy` admits inexact passes,
    as long as the compiled library stays within `max_error`, relative to the range of an output. `knowledge` is a file
    of `passfit learn`, merged over the shipped one. `max_extra_compute` limits recomputation as a fraction of the
    original arithmetic; None leaves kernels whole. With `max_latency`, the least ram is chosen among candidates within
    that latency: see `latency.least_ram_within`.
    """

    strategy: str = "orchestrated"
    evaluations: int | None = None
    seconds: float = 600.0
    seed: int = 0
    until: str = "minimum"
    lossy: bool = False
    max_error: float = 0.01
    max_extra_compute: float | None = 0.25
    max_latency: LatencyLimit | None = None
    knowledge: Path | None = None
    workers: int | None = None
    executor: str | None = None
    candidate_seconds: float = 120.0
    candidate_bytes: int = 8 << 30


def goal_of(settings: SearchSettings, budget: Budget | None, target: Target) -> Budget | None:
    """Return the budget that ends a search; None if it searches the minimum and reads no budget."""
    if settings.until != "fits":
        return None
    allowed = budget or Budget()
    return Budget(ram=allowed.ram or target.ram, flash=allowed.flash or target.flash)
