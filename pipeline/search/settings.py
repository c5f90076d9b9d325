"""Settings of a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError, did_you_mean
from ..memory.footprint import Budget
from ..params.latency_limit import LatencyLimit
from ..targets import Target

#: wanted of a library: the least time within the budget, the least ram, or the least flash
OBJECTIVES = FASTEST, RAM, FLASH = ("fastest-within-budget", "ram", "flash")
#: when a search stops by itself
UNTIL = ("minimum", "fits")


@dataclass(frozen=True)
class Aim:
    """Objective besides the least ram at any price, with the limits it counts within: budgets, else capacities, in bytes.

    `stack` is what such a budget leaves for the stack: it is not part of `ram` here.

    `max_slowdown` bounds the cycles of the objective RAM, relative to those of the fastest plan whose kernels are whole.
    """

    objective: str
    ram: int
    flash: int
    max_slowdown: float | None = None
    stack: int = 0


@dataclass(frozen=True)
class SearchSettings:
    """Settings of a search; see `strategies.trace.Limits` and `evaluate.child.CandidateLimits`.

    `workers` is a number of processes, None: every core, 0: this process only, without limits for candidates.
    `executor` is a Dask cluster to use instead, `dask://HOST:PORT`. The result does not depend on either.

    `evaluations` limits the states evaluated, None: by the size of the graph. `seconds` limits the effort, see `Effort`.

    `until` is one of UNTIL: stop at the first sequence that fits, or search the minimum. `lossy` admits inexact passes,
    as long as the compiled library stays within `max_error`, relative to the range of an output. `knowledge` is a file
    of `passfit learn`, merged over the shipped one. `max_extra_compute` limits recomputation as a fraction of the
    original arithmetic; None leaves kernels whole. `max_slowdown` limits the predicted time of the objective RAM, relative
    to the fastest plan of whole kernels; None is the least ram at any price. With `max_latency`, which replaces it, the
    least ram is chosen among candidates within that latency: see `latency.least_ram_within`. `objective` is one of
    OBJECTIVES; None: see `objective_of`.
    """

    strategy: str = "orchestrated"
    evaluations: int | None = None
    seconds: float | None = None
    seed: int = 0
    until: str = "minimum"
    lossy: bool = False
    max_error: float = 0.01
    max_extra_compute: float | None = 0.25
    max_slowdown: float | None = 1.25
    max_latency: LatencyLimit | None = None
    knowledge: Path | None = None
    workers: int | None = None
    executor: str | None = None
    candidate_seconds: float = 120.0
    candidate_bytes: int = 8 << 30
    objective: str | None = None


def goal_of(settings: SearchSettings, budget: Budget | None, target: Target) -> Budget | None:
    """Return the budget that ends a search; None if it searches the minimum and reads no budget."""
    if settings.until != "fits":
        return None
    allowed = budget or Budget()
    return Budget(
        ram=_ram_for_plan(allowed.ram or target.usable("ram"), target), flash=allowed.flash or target.usable("flash")
    )


def objective_of(settings: SearchSettings, budget: Budget | None) -> str:
    """Return the objective of a search: the fastest within a budget, by default; the least ram without one.

    A search that ends when it fits, or has a latency limit, minimises ram by default. Raises ConfigError for an unknown
    objective, and for one that a latency limit contradicts.
    """
    asked = settings.objective
    if asked is not None and asked not in OBJECTIVES:
        raise ConfigError(f"search: objective is '{asked}'.", did_you_mean(asked, OBJECTIVES))
    if settings.max_latency is not None and asked not in (None, RAM):
        raise ConfigError(
            f"search: objective {asked} with max-latency {settings.max_latency}.",
            "A latency limit asks for the least ram within it: leave one of the two out.",
        )
    if asked is not None:
        return asked
    limited = budget is not None and (budget.ram is not None or budget.flash is not None)
    return FASTEST if limited and settings.until == "minimum" and settings.max_latency is None else RAM


def aim_of(settings: SearchSettings, budget: Budget | None, target: Target) -> Aim | None:
    """Return the aim of a search besides the least ram at any price, if it has one. Raises ConfigError as `objective_of`."""
    objective = objective_of(settings, budget)
    slowdown = settings.max_slowdown if objective == RAM and settings.max_latency is None else None
    if objective == RAM and slowdown is None:
        return None
    allowed = budget or Budget()
    ram = _or(allowed.ram, target.usable("ram"))
    planned = _ram_for_plan(ram, target)
    return Aim(objective, planned, _or(allowed.flash, target.usable("flash")), slowdown, ram - planned)


def _ram_for_plan(ram: int, target: Target) -> int:
    """Return the ram that a plan may take, in bytes: the stack needs the rest."""
    return max(0, ram - target.stack_reserve)


def _or(limit: int | None, capacity: int) -> int:
    return capacity if limit is None else limit
