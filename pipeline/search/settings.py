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
    """How a sequence is looked for; see `search.strategy.Limits`, and `search.child.CandidateLimits` for candidates.

    `workers` is a number of processes, None: every core, 0: none but this one, in which candidates are without limits.
    `executor` is a Dask cluster to use instead, `dask://HOST:PORT`. The result does not depend on either.

    `evaluations` are the states the search may look at, None: as many as the size of the graph allows.

    `until` is one of UNTIL: stop at the first sequence that fits, or go on to the least ram. `lossy` admits passes that
    are not exact, as long as the compiled library stays within `max_error`, relative to the range of an output.
    `knowledge` is a file of `passfit learn`, on top of what ships with passfit. `max_extra_compute` is how much more
    arithmetic there may be for less ram, as a fraction of what there is; None leaves kernels whole. With `max_latency`
    the least ram is looked for among what runs in that time: see `latency.least_ram_within`.
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
    """Return the bytes that end a search; None where it goes on to the minimum and reads no budget."""
    if settings.until != "fits":
        return None
    allowed = budget or Budget()
    return Budget(ram=allowed.ram or target.ram, flash=allowed.flash or target.flash)
