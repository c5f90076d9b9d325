"""Choose the candidate of least ram within a latency limit; candidates are built and timed side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..params.latency_limit import LatencyLimit
from ..passes.sequence.sequence import Sequence
from ..support.temporary_folder import scratch_folder
from ..targets import Target, how_to_run
from ..verify.inputs import make_input
from ..verify.measure.side_by_side import compare_speed
from .pareto import Front, Point, front
from .refine.levers import Attempt
from .search import SearchResult, replace_winner

if TYPE_CHECKING:
    import onnx

    from ..verify.runner import Linked

#: candidates between streamed and whole kernels, as fractions of the bytes between the two
RUNGS = (0.03, 0.1, 0.25, 0.5)
_ARITHMETIC = "arithmetic"


def check_limit(limit: LatencyLimit, target: Target) -> None:
    """Raise ConfigError for a limit in milliseconds if the target does not run natively here."""
    if limit.milliseconds is not None and not how_to_run(target).native:
        raise ConfigError(
            f"max-latency {limit}: {target.name} cannot be timed on this machine.",
            "Give a ratio such as 1.5x: it compares instructions under an emulator.",
        )


def least_ram_within(
    limit: LatencyLimit,
    result: SearchResult,
    model: onnx.ModelProto,
    target: Target,
    build: Callable[[Sequence, Path], Linked],
    progress: Callable[[int, int], None] = lambda done, all: None,
) -> tuple[SearchResult, Front]:
    """Choose the candidate of least ram within the limit, else the fastest.

    Returns `result` for that candidate, and the front of all candidates. A ratio is relative to the whole kernels of
    `tvm-default` under the same rules: the first candidate. Candidates are timed natively; under an emulator their
    instructions are counted, unless too many; else their arithmetic is compared. `build` makes the library of a
    sequence in a folder. Passes on the errors of building and running.
    """
    tried = _different(result.tried)
    with scratch_folder() as scratch:
        linked = []
        for number, each in enumerate(tried):
            progress(number, len(tried))
            place = scratch / str(number)
            place.mkdir()
            linked.append(build(each.evaluation.sequence, place))
        found = compare_speed(linked, make_input(model, 0, 0))
    unit, latencies = found or (_ARITHMETIC, [1 + each.extra_compute for each in tried])
    points = [_point(each, latency) for each, latency in zip(tried, latencies, strict=True)]
    tradeoff = front(unit, limit, points, latencies[0])
    chosen = tried[points.index(tradeoff.points[tradeoff.chosen])]
    return replace_winner(result, chosen), tradeoff


def _different(tried: tuple[Attempt, ...]) -> list[Attempt]:
    """Drop attempts without footprint, and all but the first of equal passes."""
    found: dict[tuple[str, ...], Attempt] = {}
    for each in tried:
        if each.evaluation.footprint is not None:
            found.setdefault(each.evaluation.sequence.specs, each)
    return list(found.values())


def _point(tried: Attempt, latency: float) -> Point:
    found = tried.evaluation
    return Point(tried.lever, found.sequence.specs, found.result.ram, tried.extra_compute, latency)
