"""Run a search by settings: choose workers, check lossy winners, hold a latency limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen.build_library import build_library
from ..errors import ConfigError, NumericError, did_you_mean
from ..frontend.imported_model import ImportedModel
from ..memory.footprint import Budget
from ..memory.validation.checked_plan import checked_plan
from ..support.progress import Progress, silent
from ..support.sizes import format_bytes
from ..support.temporary_folder import scratch_folder
from ..targets import Target, native_target
from ..verify.build_and_run import build_and_run
from ..verify.settings import VerifySettings
from .effort import SECONDS
from .settings import RAM, UNTIL, SearchSettings, aim_of, goal_of

if TYPE_CHECKING:
    from ..passes.sequence.sequence import Sequence as PassSequence
    from ..verify.runner import Linked
    from .evaluate.scoring import Scorer
    from .evaluate.workers import Workers
    from .first_library import FirstLibrary
    from .pareto import Front
    from .search import SearchResult


def find_sequence(
    imported: ImportedModel,
    target: Target,
    budget: Budget | None,
    settings: SearchSettings,
    progress: Progress,
    wait_for_others: Callable[[], object] = lambda: None,
    first: FirstLibrary | None = None,
) -> tuple[SearchResult, Front | None]:
    """Search a sequence by settings; with a latency limit, return the Pareto front too.

    `wait_for_others` waits for other work, which would disturb the timing for a latency limit. `first` is offered the best
    sequences on the way, but lossy ones. Raises ConfigError for
    invalid settings, ModelError if nothing compiles.
    """
    from ..frontend.imported_model import port_names
    from ..passes.sequence.replay import replay
    from ..verify.runner import link
    from .knowledge import load_knowledge
    from .latency import RUNGS, check_limit, least_ram_within
    from .search import search
    from .strategies.trace import Limits

    if settings.until not in UNTIL:
        raise ConfigError(f"search: until is '{settings.until}'.", did_you_mean(settings.until, UNTIL))
    extra = settings.max_extra_compute
    if extra is not None and not 0 <= extra < math.inf:
        raise ConfigError(f"search: max_extra_compute is {extra:g}.", "Give a fraction: 0.25 is a quarter more.")
    if settings.max_slowdown is not None and not 1 <= settings.max_slowdown < math.inf:
        raise ConfigError(
            f"search: max_slowdown is {settings.max_slowdown:g}.",
            "Give a factor of 1 or more: 1.25 is a quarter more time.",
        )
    limit = settings.max_latency
    if limit is not None:
        check_limit(limit, target)
    aim = aim_of(settings, budget, target)
    rungs = RUNGS if limit is not None or (aim is not None and aim.objective != RAM) else ()

    def describe(least: int, slowdown: float) -> str:
        said = f"least ram so far {format_bytes(least)}" if least else ""
        took = f" at {slowdown:.2f} × the time of the fastest whole kernels" if slowdown else ""
        return ", ".join(filter(None, (said + took, first.note if first is not None else "")))

    def offered(sequence: PassSequence) -> None:
        if first is not None and not sequence.lossy:
            first.offer(sequence)

    result = search(
        imported.graph, imported.name, target, *port_names(imported.onnx),
        strategy=settings.strategy, limits=Limits(settings.evaluations, settings.seconds or SECONDS, goal_of(settings, budget, target)), seed=settings.seed,
        lossy=settings.lossy, knowledge=load_knowledge(settings.knowledge), refuse=lambda sequence: _refuse(sequence, imported, target, settings),
        progress=lambda what, done, least, slowdown: progress(what, done, 0, describe(least, slowdown)),
        workers=workers_of(imported, target, settings), extra_compute=extra, rungs=rungs, aim=aim, incumbent=offered,
    )  # fmt: skip
    if limit is None:
        return result, None

    def build(sequence: PassSequence, place: Path) -> Linked:
        lowered, workspace = replay(sequence, imported.graph, imported.onnx, imported.name, target.machine)
        library = build_library(imported.name, lowered, checked_plan(lowered.program, target), workspace, target, place)
        return link(library, lowered.program, target, place)

    wait_for_others()
    return least_ram_within(
        limit, result, imported.drawn_for, target, build, lambda done, all: progress("timing", done, all)
    )


def _refuse(sequence: PassSequence, imported: ImportedModel, target: Target, settings: SearchSettings) -> str:
    """Return why a lossy sequence is refused, or an empty string.

    Its library is built and compared with the reference; for this machine if possible, else for the target.
    """
    from ..passes.sequence.replay import replay

    here = native_target() or target
    verify = VerifySettings(settings.seed, tolerance=settings.max_error)
    lowered, workspace = replay(sequence, imported.graph, imported.onnx, imported.name, here.machine)
    plan = checked_plan(lowered.program, here)
    with scratch_folder() as scratch:
        try:
            measured, _ = build_and_run(imported, lowered, plan, workspace, here, scratch, verify, silent)
        except NumericError as error:
            return error.what
    return "" if measured.ran else f"its error is unknown: {measured.how}"


def workers_of(imported: ImportedModel, target: Target, settings: SearchSettings) -> Callable[[Scorer], Workers]:
    """Choose the workers of a search: forked processes, or a Dask cluster."""
    from .evaluate.child import CandidateLimits
    from .evaluate.forked import forked

    limits = CandidateLimits(settings.candidate_seconds, settings.candidate_bytes)
    if settings.executor is None:
        return forked(settings.workers, limits)
    from .evaluate.cluster import Problem, cluster_workers

    onnx_bytes = imported.onnx.SerializeToString(deterministic=True)
    return cluster_workers(settings.executor, Problem(onnx_bytes, imported.name, target, limits))
