"""Choose the figures of an MLflow run: few charts, the ones people look for first.

MLflow makes a chart of every metric, in sections named by the part before the slash, both in alphabetical order, metrics without a
section last; a line from step to step where a metric has a step above 0. So ram, flash and latency stand in the first section, each in
one chart that begins at `tvm-default` (step 0) and ends at passfit (step 1). The metrics of this section are those of the
LoggedModel too, which searches compare: see `model_figures`. Bytes of everything else are in footprint.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..data.accuracy import AccuracyReport
from ..memory.footprint import BesideFloats, FootprintReport
from ..memory.limits import telling

KIB = 1024
#: characters that MLflow refuses in names of metrics
_FORBIDDEN = re.compile(r"[^\w\-. /:]", re.ASCII)
#: the section that comes first, that of the footprint `best` in footprint.json, and the steps of its charts
BEST, BASELINE, PASSFIT = "best", 0, 1
#: the section of quantised models
FLOATS = "beside float32"
#: best ram of the search so far, by evaluation
SEARCH = "search/best_ram_kib"


@dataclass(frozen=True)
class MetricValue:
    """Value of a metric; `step` is 0 but for a value that stands next to another. `on_samples`: of the model's samples."""

    name: str
    value: float
    step: int = 0
    on_samples: bool = False


@dataclass(frozen=True)
class TimedPoint:
    """Point of a front; `latency` is in the front's unit."""

    lever: str
    latency: float


@dataclass(frozen=True)
class TimedFront:
    """Latencies of front.json."""

    unit: str
    points: list[TimedPoint]


def figures(
    result: FootprintReport, trajectory: Sequence[tuple[int, int]], front: TimedFront | None = None
) -> Iterator[MetricValue]:
    """Yield the figures of a run, ram first: MLflow compares runs by the metric logged first.

    Sizes are KiB, times ms. `trajectory` is (evaluation, best ram so far in bytes) of the search; its last point, one
    step later, is the ram of the chosen sequence. `front` is there where the search had a limit
    of latency: only then is the latency of tvm-default's kernels known.
    """
    best, before, ran = result.best, result.baseline, result.measured
    pairs = {
        "ram_kib": (before.ram, best.ram, KIB),
        "flash_kib": (before.flash, best.flash, KIB),
        "latency_ms": (_baseline_latency(front), ran.latency_ms, 1),
    }
    for name, (theirs, ours, unit) in pairs.items():
        if theirs is not None and ours is not None:
            yield MetricValue(f"{BEST}/{name}", theirs / unit, BASELINE)
        if ours is not None:
            yield MetricValue(f"{BEST}/{name}", ours / unit, PASSFIT)
    alone = {
        "fits": float(result.fits),
        "stack_kib": best.stack / KIB or None,
        "max_rel_error": ran.matched_error,
        "instructions": ran.instructions,
        "cycles": ran.cycles,
        "estimated_ms": None if ran.estimated is None else ran.estimated.likely,
    }
    yield from (MetricValue(f"{BEST}/{name}", value) for name, value in alone.items() if value is not None)
    if result.quantised is not None:
        yield from _float_twin_figures(result.quantised)
    if result.budget.ram is not None:
        yield MetricValue("budget/ram_margin_kib", (result.budget.ram - best.ram) / KIB)
    if result.budget.flash is not None:
        yield MetricValue("budget/flash_margin_kib", (result.budget.flash - best.flash) / KIB)
    yield from (MetricValue(SEARCH, ram / KIB, evaluation) for evaluation, ram in trajectory)
    if ran.given is not None:
        agreed = (
            ("given_max_lsb", ran.given.max_lsb),
            ("given_differing", ran.given.differing),
            ("given_same_decisions", ran.given.same_decisions),
        )
        yield from (MetricValue(f"verify/{name}", value) for name, value in agreed if value is not None)
    if ran.ram is not None:
        yield MetricValue("verify/measured_ram_kib", ran.ram / KIB)
    yield from (MetricValue(f"regions/{region.name}_kib", region.used / KIB) for region in telling(best.regions))
    if ran.throughput is not None:
        yield MetricValue("verify/throughput_per_s", ran.throughput)
    if ran.energy is not None and ran.energy.mj_per_run is not None:
        yield MetricValue("verify/energy_mj", ran.energy.mj_per_run)
    if ran.compile_seconds is not None:
        yield MetricValue("verify/compile_seconds", ran.compile_seconds)


def sample_figures(report: AccuracyReport) -> Iterator[MetricValue]:
    """Yield the metric on the model's samples under its own name: the file's at step 0, the library's at step 1; loss and agreement."""
    metric = _FORBIDDEN.sub("_", report.metric)
    found = [
        (metric, report.reference.value, BASELINE),
        (metric, report.value, PASSFIT),
        ("accuracy_loss", report.loss, 0),
        ("agreement", report.agreement, 0),
    ]
    yield from (MetricValue(name, value, step, True) for name, value, step in found if value is not None)


def model_figures(found: Iterable[MetricValue]) -> list[MetricValue]:
    """Return the figures of a LoggedModel: the last value of each metric of the first section, and of those on samples."""
    own = [figure for figure in found if figure.on_samples or figure.name.startswith(f"{BEST}/")]
    return list({figure.name: figure for figure in own}.values())


def _float_twin_figures(found: BesideFloats) -> Iterator[MetricValue]:
    """Yield the estimates of a quantised model's float twin (step 0) and of the model (step 1)."""
    yield MetricValue(f"{FLOATS}/integer_share", found.integer_share)
    if found.floats is None or found.integers is None:
        return
    for name in ("ram", "weights"):
        yield MetricValue(f"{FLOATS}/{name}_kib", getattr(found.floats, name) / KIB, BASELINE)
        yield MetricValue(f"{FLOATS}/{name}_kib", getattr(found.integers, name) / KIB, PASSFIT)


def _baseline_latency(front: TimedFront | None) -> float | None:
    """Return the latency of tvm-default's kernels in ms, or None if it was not timed."""
    if front is None or front.unit != "ms":
        return None
    return next((point.latency for point in front.points if point.lever == "tvm-default"), None)
