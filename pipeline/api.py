"""The steps of a run, readable top to bottom. Each takes a model and writes small, deterministic files."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import ConfigError, NumericError, OutputError, did_you_mean
from .frontend.source import resolve_source
from .graph.files import write_text
from .graph.serial import json_lines
from .memory.footprint import Budget, Footprint, FootprintReport, Measured, Start
from .memory.latency import LatencyLimit
from .output import result_folder
from .targets import Target, how_to_run, native_target

if TYPE_CHECKING:
    import onnx
    from tvm.ir import IRModule

    from .codegen.library import Library
    from .graph import Program
    from .kernels.lowering import Lowered
    from .kernels.tuning import Tuning
    from .memory import ArenaPlan
    from .passes.sequence import Sequence as PassSequence
    from .search.knowledge import Knowledge
    from .search.scoring import Scorer
    from .search.search import SearchResult
    from .search.workers import Workers
    from .tuning.database import Database
    from .verify.runner import Linked

#: called with what is being done, how much of it is done, and how much there is (0: not known)
Progress = Callable[[str, int, int], None]

#: when a search stops by itself
UNTIL = ("minimum", "fits")

Shapes = Mapping[str, Sequence[int]]
Fixed = Mapping[str, object]


def _silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


@dataclass(frozen=True)
class ImportedModel:
    """A canonical ONNX model, the graph TVM made of it, and the metric of the file it came from."""

    name: str
    onnx: onnx.ModelProto
    graph: IRModule
    start: Start


@dataclass(frozen=True)
class SearchSettings:
    """How a sequence is looked for; see `search.strategy.Limits`, and `search.child.CandidateLimits` for candidates.

    `workers` is a number of processes, None: every core, 0: none but this one, in which candidates are without limits.
    `executor` is a Dask cluster to use instead, `dask://HOST:PORT`. The result does not depend on either.

    `until` is one of UNTIL: stop at the first sequence that fits, or go on to the least ram. `lossy` admits passes that
    are not exact, as long as the compiled library stays within `max_error`, relative to the range of an output.
    `knowledge` is a file of `passfit learn`, on top of what ships with passfit. `max_extra_compute` is how much more
    arithmetic there may be for less ram, as a fraction of what there is; None leaves kernels whole. With `max_latency`
    the least ram is looked for among what runs in that time: see `latency.within`.
    """

    strategy: str = "orchestrated"
    evaluations: int = 256
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
    """How a library is compared with ONNX Runtime; `tolerance` is relative to the range of an output, and so is
    `max_error`, which holds where the sequence has lossy passes."""

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


def import_onnx(model: str | Path, shapes: Shapes | None = None, fix: Fixed | None = None) -> tuple[onnx.ModelProto, Start]:
    """The canonical form of a model given by path or source, and the metric of the file as given.

    Raises ModelError for what cannot be read or compiled.
    """
    from .frontend.canonical import import_model
    from .frontend.start import mark_start, start_of

    path = resolve_source(str(model))
    canonical = import_model(path, shapes, fix)
    start = start_of(path, shapes or {}, fix or {})
    mark_start(canonical, start)
    return canonical, start


def import_model_file(source: str | Path, shapes: Shapes | None, fix: Fixed | None, out: Path) -> None:
    """Write the canonical ONNX of a model to `out`. Raises ModelError, OutputError."""
    canonical, _ = import_onnx(source, shapes, fix)
    with result_folder(out.parent) as folder:
        (folder / out.name).write_bytes(canonical.SerializeToString(deterministic=True))


def load(model: str | Path, name: str | None = None, shapes: Shapes | None = None, fix: Fixed | None = None) -> ImportedModel:
    """Import a model; `name` defaults to that of its file."""
    from .frontend.relax import to_relax

    canonical, start = import_onnx(model, shapes, fix)
    file = Path(str(model).rpartition("!")[2])  # of a source, the path in the package: what is read is a cached copy
    return ImportedModel(name or file.stem, canonical, to_relax(canonical), start)


def profile(
    model: str | Path,
    target: Target,
    out: Path,
    *,
    name: str | None = None,
    shapes: Shapes | None = None,
    fix: Fixed | None = None,
    progress: Progress = _silent,
    clock: dict[str, float] | None = None,
) -> dict:
    """Try every pass alone and after every other; write effects.json to `out` and its picture, an .svg, beside it.

    Returns what is in effects.json; `clock` is given the seconds of each pass alone. Raises ModelError, OutputError.
    """
    _check_parent(out)
    picture = out.with_suffix(".svg")
    if picture == out:
        raise OutputError(f"'{out}' is where the picture goes.", f"Name the file '{out.stem}.json'.")
    _check_parent(picture)
    imported = load(model, name, shapes, fix)

    # only now: TVM takes a second to import, and bad input need not wait for it
    from .report.heat_map import heat_map
    from .search.effects import effects
    from .search.replay import port_names

    found = effects(imported.graph, target, *port_names(imported.onnx), progress=progress, clock=clock)
    write_text(out, json_lines(found))
    write_text(picture, heat_map(found, f"{imported.name} @ {target.name}"))
    return found


def learn(
    models: Sequence[str | Path],
    target: Target,
    out: Path,
    *,
    name: str | None = None,
    shapes: Shapes | None = None,
    fix: Fixed | None = None,
    evaluations: int = 256,
    progress: Progress = _silent,
) -> Knowledge:
    """Explore models, and add what was found to the knowledge file `out`, which is made if it is not there.

    `name` is what a single model is called there; it is that of its file by default. What is known of a graph is
    replaced. Raises ModelError, ConfigError where `out` is no knowledge file of this version, OutputError.
    """
    if name is not None and len(models) > 1:
        raise ConfigError(f"--name {name}: {len(models)} models cannot share a name.", "Learn them one by one.")
    _check_parent(out)
    from .search.knowledge import Knowledge
    from .search.knowledge.store import merged, read_records, write_records

    known = read_records(out) if out.exists() else ()
    imported = [load(model, name, shapes, fix) for model in models]

    # only now: TVM takes a second to import, and bad input need not wait for it
    from .search.evaluation import Evaluator
    from .search.knowledge.explore import explore
    from .search.replay import port_names

    for each in imported:
        workers = _workers(each, target, SearchSettings())
        with closing(Evaluator(each.graph, each.name, target, *port_names(each.onnx), workers=workers)) as evaluator:
            record = explore(evaluator, each.name, evaluations, lambda done: progress("learning", done, evaluations))
        known = merged(known, (record,))
    write_records(known, out)
    return Knowledge(known)


def optimize(
    model: str | Path,
    target: Target,
    budget: Budget | None = None,
    *,
    out: Path,
    name: str | None = None,
    search: SearchSettings = SearchSettings(),
    shapes: Shapes | None = None,
    fix: Fixed | None = None,
    progress: Progress = _silent,
) -> FootprintReport:
    """Search a sequence and write sequence.json, footprint.json, search.json and trajectory.json to `out`.

    Nothing is executed, but for the winner where it is lossy. Raises ModelError, ConfigError for an unknown strategy,
    OutputError.
    """
    with result_folder(out) as folder:
        imported = load(model, name, shapes, fix)
        result = _search(imported, target, budget, search, folder, progress)
        not_run = Measured(ran=False, how="not-run: optimized, not compiled")
        exact = not result.sequence.lossy
        report = _report(imported, target, budget, result.best, result.baseline, not_run, exact)
        _write_search(result, folder)
        _write_report(report, folder)
    return report


def compile_model(
    model: str | Path,
    target: Target,
    budget: Budget | None = None,
    *,
    out: Path,
    sequence: Path | None = None,
    tuning: Path | None = None,
    name: str | None = None,
    search: SearchSettings = SearchSettings(),
    verify: VerifySettings = VerifySettings(),
    shapes: Shapes | None = None,
    fix: Fixed | None = None,
    progress: Progress = _silent,
) -> FootprintReport:
    """Build the library of a model, run it, compare and measure it, and write everything about it to `out`.

    Without `sequence`, the file of one, the sequence is searched for first. `tuning` is a file of `tune`: what it says of
    kernels of this program counts. Raises ModelError, SequenceError, ConfigError where that file is of another target,
    NumericError where the library computes something else than ONNX Runtime, ToolchainError, OutputError.
    """
    from .passes.sequence import read_sequence

    # first what is quickly known to be wrong
    chosen = None if sequence is None else read_sequence(sequence)
    tuned = None
    if tuning is not None:
        from .tuning.database import read_tuning

        tuned = read_tuning(tuning, target)
    with result_folder(out):
        imported = load(model, name, shapes, fix)
    return compile_imported(
        imported, target, budget, out=out, sequence=chosen, tuning=tuned, search=search, verify=verify, progress=progress
    )


def compile_imported(
    imported: ImportedModel,
    target: Target,
    budget: Budget | None = None,
    *,
    out: Path,
    sequence: PassSequence | None = None,
    tuning: Tuning | None = None,
    search: SearchSettings = SearchSettings(),
    verify: VerifySettings = VerifySettings(),
    progress: Progress = _silent,
) -> FootprintReport:
    """`compile_model` of a model that is imported already."""
    from .kernels.tuning import Tuning
    from .passes.sequence import write_sequence

    chosen, tuned = sequence, tuning or Tuning()
    with result_folder(out) as folder:
        # only now: TVM takes a second to import, and bad input need not wait for it
        from .search.baseline import tvm_default
        from .search.replay import port_names, replay

        if chosen is None:
            result = _search(imported, target, budget, search, folder, progress)
            chosen = result.sequence
            _write_search(result, folder)
        progress("lowering", 0, 0)
        lowered, workspace = replay(chosen, imported.graph, imported.onnx, imported.name, target.machine, tuned)
        plan = plan_of(lowered, target)
        tolerance = max(verify.tolerance, verify.max_error) if chosen.lossy else verify.tolerance
        checked = replace(verify, tolerance=tolerance)
        measured, code = _build_and_run(imported, lowered, plan, workspace, target, folder, checked, progress)
        best = footprint_of(lowered.program, plan, workspace, code, target)
        baseline = tvm_default(imported.graph, target, *port_names(imported.onnx))
        report = _report(imported, target, budget, best, baseline, measured, not chosen.lossy)
        write_sequence(chosen, folder / "sequence.json")
        _write_report(report, folder)
        before, _ = replay(
            chosen.without_arrangement(), imported.graph, imported.onnx, imported.name, target.machine
        )
        _write_pictures(imported, lowered, plan, before, target, folder)
        _write_manifest(imported, lowered, target, chosen, tuned, folder)
    return report


def tune(
    model: str | Path,
    target: Target,
    out: Path,
    *,
    sequence: Path | None = None,
    settings: TuneSettings = TuneSettings(),
    name: str | None = None,
    search: SearchSettings = SearchSettings(),
    shapes: Shapes | None = None,
    fix: Fixed | None = None,
    progress: Progress = _silent,
) -> Database:
    """Time the kernels of a model one by one, look for faster schedules until the time is up, and write tuning.json.

    With 0 seconds, nothing is looked at: the file says that nothing is tuned. Without `sequence`, the sequence is
    searched for first. Ctrl-C while kernels are tuned ends that early: what was found is written. Raises ModelError,
    SequenceError, OutputError; ConfigError for a target whose programs do not run here natively.
    """
    from .passes.sequence import read_sequence
    from .tuning.database import empty, write_database

    _check_parent(out)
    found = empty(target, settings.seed)
    if settings.seconds <= 0:
        write_database(found, out)
        return found
    runner = how_to_run(target)
    if not runner.native:
        raise ConfigError(
            f"Kernels for {target.name} cannot be timed here ({runner.how}): tuning is for targets that run natively.",
            "Tune on such a device, or set seconds to 0.",
        )
    chosen = None if sequence is None else read_sequence(sequence)
    imported = load(model, name, shapes, fix)
    if chosen is None:
        chosen = _search(imported, target, None, search, progress).sequence

    # only now: TVM takes a second to import, and bad input need not wait for it
    from .kernels.tuning import Tuning
    from .search.replay import replay
    from .tuning.census import Census
    from .tuning.tune import Clock, finds_cold_caches, tune_kernels, within

    progress("lowering", 0, 0)
    census = Census()
    untuned = replay(chosen, imported.graph, imported.onnx, imported.name, target.machine, census)
    clock = Clock(settings.seconds, lambda over: progress("tuning", int(over), math.ceil(settings.seconds)))
    cold = finds_cold_caches(untuned[0].program.weight_bytes)
    kernels = tune_kernels(census, target, clock, settings.seed, settings.trials, cold)
    found = replace(found, how=f"native, caches {'cold' if cold else 'warm'}", kernels=tuple(kernels))
    tuned = replay(chosen, imported.graph, imported.onnx, imported.name, target.machine, Tuning(found.choices))
    if tuned[1] > untuned[1]:  # windows in one kernel share their workspaces, in ways that only the whole shows
        found = replace(found, kernels=tuple(within(kernels, census)))
    write_database(found, out)
    return found


def _search(
    imported: ImportedModel,
    target: Target,
    budget: Budget | None,
    settings: SearchSettings,
    folder: Path,
    progress: Progress,
) -> SearchResult:
    """What is found within the settings; where latency is limited, front.json in `folder` says what was tried."""
    from .latency import RUNGS, check_limit, within
    from .search.knowledge import load_knowledge
    from .search.replay import port_names, replay
    from .search.search import search
    from .search.strategy import Limits
    from .verify.runner import link

    if settings.until not in UNTIL:
        raise ConfigError(f"search: until is '{settings.until}'.", did_you_mean(settings.until, UNTIL))
    extra = settings.max_extra_compute
    if extra is not None and not 0 <= extra < math.inf:
        raise ConfigError(f"search: max_extra_compute is {extra:g}.", "Give a fraction: 0.25 is a quarter more.")
    limit = settings.max_latency
    if limit is not None:
        check_limit(limit, target)
    allowed = budget or Budget()
    goal = Budget(ram=allowed.ram or target.ram, flash=allowed.flash or target.flash) if settings.until == "fits" else None
    result = search(
        imported.graph, imported.name, target, *port_names(imported.onnx),
        strategy=settings.strategy, limits=Limits(settings.evaluations, settings.seconds, goal), seed=settings.seed,
        lossy=settings.lossy, knowledge=load_knowledge(settings.knowledge), refuse=lambda sequence: _refuse(sequence, imported, target, settings),
        progress=lambda done, best: progress("searching", done, settings.evaluations),
        workers=_workers(imported, target, settings), extra_compute=extra, rungs=() if limit is None else RUNGS,
    )  # fmt: skip
    if limit is None:
        return result

    def built(sequence: PassSequence, place: Path) -> Linked:
        lowered, workspace = replay(sequence, imported.graph, imported.onnx, imported.name, target.machine)
        library = build_library(imported.name, lowered, plan_of(lowered, target), workspace, target, place)
        return link(library, lowered.program, target, place)

    result, front = within(
        limit, result, imported.onnx, target, built, lambda done, all: progress("timing", done, all)
    )
    write_text(folder / "front.json", json_lines(asdict(front)))
    return result


def _refuse(sequence: PassSequence, imported: ImportedModel, target: Target, settings: SearchSettings) -> str:
    """Why a lossy sequence will not do: its library, built for this machine where that can be, is too far off."""
    import tempfile

    from .search.replay import replay

    here = native_target() or target
    verify = VerifySettings(settings.seed, tolerance=settings.max_error)
    lowered, workspace = replay(sequence, imported.graph, imported.onnx, imported.name, here.machine)
    plan = plan_of(lowered, here)
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        try:
            measured, _ = _build_and_run(imported, lowered, plan, workspace, here, Path(scratch), verify, _silent)
        except NumericError as error:
            return error.what
    return "" if measured.ran else f"its error is not known: {measured.how}"


def _workers(imported: ImportedModel, target: Target, settings: SearchSettings) -> Callable[[Scorer], Workers]:
    from .search.child import CandidateLimits
    from .search.forked import forked

    limits = CandidateLimits(settings.candidate_seconds, settings.candidate_bytes)
    if settings.executor is None:
        return forked(settings.workers, limits)
    from .search.cluster import Problem, on_cluster

    onnx_bytes = imported.onnx.SerializeToString(deterministic=True)
    return on_cluster(settings.executor, Problem(onnx_bytes, imported.name, target, limits))


def plan_of(lowered: Lowered, target: Target) -> ArenaPlan:
    """The arena of a lowered program on a target, validated. Raises PlanError, which would be a bug."""
    from .memory import plan_arena, validate_plan

    plan = plan_arena(lowered.program, target.alignment)
    validate_plan(lowered.program, plan, target.alignment)
    return plan


def _build_and_run(
    imported: ImportedModel,
    lowered: Lowered,
    plan: ArenaPlan,
    workspace: int,
    target: Target,
    folder: Path,
    settings: VerifySettings,
    progress: Progress,
) -> tuple[Measured, int]:
    """Write the library into `folder`; returns what running it showed, and the bytes of its code."""
    from .verify import verify_library

    progress("compiling", 0, 0)
    library = build_library(imported.name, lowered, plan, workspace, target, folder)
    progress("running", 0, 0)
    measured = verify_library(
        library, lowered.program, imported.onnx, target,
        seed=settings.seed, cases=settings.cases, tolerance=settings.tolerance,
    )  # fmt: skip
    return measured, library.code_bytes


def build_library(
    name: str, lowered: Lowered, plan: ArenaPlan, workspace: int, target: Target, folder: Path
) -> Library:
    """The library of a lowered program, in `folder`. Raises ModelError, ToolchainError, OutputError."""
    import tempfile

    from .codegen import c_identifier, symbol, write_library
    from .kernels.build import build_object

    prefix = c_identifier(name)
    with tempfile.TemporaryDirectory(prefix="passfit-") as scratch:
        kernels = Path(scratch) / "kernels.o"
        build_object(lowered.kernels, target, lambda kernel: symbol(prefix, kernel), kernels)
        return write_library(name, lowered.program, plan, workspace, lowered.weights, kernels, target, folder)


def footprint_of(program: Program, plan: ArenaPlan, workspace: int, code: int, target: Target) -> Footprint:
    """What the library of a program takes, its `workspace` and `code` being known; in bytes."""
    from .memory import account

    in_place = target.weights == "in-place"
    return account(program, plan, workspace=workspace, code=code, weights_in_place=in_place)


def _report(
    imported: ImportedModel,
    target: Target,
    budget: Budget | None,
    best: Footprint,
    baseline: Footprint,
    measured: Measured,
    exact: bool,
) -> FootprintReport:
    from .memory import fits

    budget = budget or Budget()
    within = fits(best.ram, best.flash, budget, target.ram, target.flash)
    return FootprintReport(imported.name, target.name, imported.start, best, baseline, measured, budget, within, exact)


def _write_search(result: SearchResult, folder: Path) -> None:
    from .passes.sequence import write_sequence

    write_sequence(result.sequence, folder / "sequence.json")
    write_text(folder / "trajectory.json", json.dumps(list(result.trajectory), indent=1) + "\n")
    found = {
        "strategy": result.strategy,
        "evaluations": result.evaluations,
        "closed": result.closed,
        "ablation": [asdict(worth) for worth in result.ablation],
        "levers": [asdict(lever) for lever in result.levers],
        "extra_compute": result.extra_compute,
        "next": result.next,
        "failures": result.failures,
        "rejected": result.rejected,
    }
    write_text(folder / "search.json", json_lines(found))


def _write_report(report: FootprintReport, folder: Path) -> None:
    from .memory import write_report

    write_report(report, folder / "footprint.json")


def _write_pictures(
    imported: ImportedModel, lowered: Lowered, plan: ArenaPlan, before: Lowered, target: Target, folder: Path
) -> None:
    """The plan, and its picture beside that of `before`, on one scale."""
    from .memory import SavedPlan, write_plan
    from .report.arena_map import arena_svg, common_scale

    write_plan(SavedPlan(lowered.program, plan, target.alignment), folder / "plan.json")
    title = f"{imported.name} @ {target.name}"
    plan_before = plan_of(before, target)
    scale = common_scale((lowered.program, plan), (before.program, plan_before))
    picture = arena_svg(lowered.program, plan, title, target.alignment, scale)
    write_text(folder / "arena.svg", picture)
    title += ": order given, nothing shared or split"
    picture = arena_svg(before.program, plan_before, title, target.alignment, scale)
    write_text(folder / "arena-before.svg", picture)


def _write_manifest(
    imported: ImportedModel, lowered: Lowered, target: Target, sequence: PassSequence, tuning: Tuning, folder: Path
) -> None:
    from .codegen import c_identifier

    program = lowered.program

    def ports(group: tuple) -> list[dict]:
        tensors = [(port.name, program.tensors[port.tensor]) for port in group]
        return [{"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype} for name, tensor in tensors]

    files = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name != "footprint.json"
    }
    manifest = {
        "model": imported.name,
        "target": target.name,
        "passes": list(sequence.specs),
        "exact": not sequence.lossy,
        "versions": {each: importlib.metadata.version(each) for each in ("passfit", "apache-tvm", "ziglang")},
        "io": {"name": c_identifier(imported.name), "inputs": ports(program.inputs), "outputs": ports(program.outputs)},
        "files": files,
    }
    if target.threads > 1:
        manifest |= {"threads": target.threads, "link": ["-lpthread"]}
    if tuning:
        manifest["tuning"] = tuning.digest
    write_text(folder / "manifest.json", json_lines(manifest))


def _check_parent(out: Path) -> None:
    if out.is_dir():
        raise OutputError(f"'{out}' is a folder, not a file.", "Give the name of a file.")
    if not out.parent.is_dir():
        raise OutputError(f"The folder '{out.parent}' does not exist.", "Make it first.")
