"""What a run may be told: how a sequence is looked for, a library compared, kernels tuned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from .memory.latency import LatencyLimit

#: when a search stops by itself
UNTIL = ("minimum", "fits")


class Progress(Protocol):
    """Be told what is being done, how much of it is done, how much there is (0: not known), and the best so far."""

    def __call__(self, what: str, done: int = 0, total: int = 0, found: str = "") -> None: ...


def silent(what: str, done: int = 0, total: int = 0, found: str = "") -> None:
    """Show no progress."""


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
    the least ram is looked for among what runs in that time: see `latency.within`.
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


@dataclass(frozen=True)
class VerifySettings:
    """How a library is compared with the model in double precision, or with ONNX Runtime where that cannot be had.

    An error up to `tolerance`, relative to the range of its output, always passes; so does `max_error`, where the
    sequence has lossy passes. A larger one passes only as far as rounding explains it: see `verify.bounds`."""

    seed: int = 0
    cases: int = 3
    tolerance: float = 1e-4
    max_error: float = 0.01


@dataclass(frozen=True)
class TuneSettings:
    """How long faster schedules are looked for, in seconds of wall time: 0 leaves every kernel to the rules.

    `trials` is what MetaSchedule may measure for each kernel; 0 leaves it out. `seed` is of what is left to chance.
    """

    seconds: float = 600.0
    seed: int = 0
    trials: int = 64
