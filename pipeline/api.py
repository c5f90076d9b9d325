"""Run one step each, and write small, deterministic files. TVM is imported late, so that bad input fails first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .artifacts.canonical_file import import_model_file as import_model_file
from .artifacts.footprint_report import footprint_report
from .artifacts.origin import search_record
from .artifacts.quantised_file import build_within as build_within
from .artifacts.quantised_file import quantize as quantize
from .artifacts.write import (
    comparison_kept,
    replace_result,
    write_footprint,
    write_library,
    write_manifest,
    write_search,
)
from .data.accuracy import AccuracyReport
from .errors import ConfigError
from .evaluate.settings import EvaluateSettings
from .fit.fit_model import fit as fit
from .frontend.imported_model import ImportedModel, load, port_names
from .frontend.imported_model import import_onnx as import_onnx
from .frontend.source.import_options import ImportKeywords, ImportOptions
from .frontend.source.provenance import Provenance
from .frontend.source.source import resolve_source as resolve_source
from .memory.footprint import Budget, Defect, FootprintReport, Measured
from .quantise.quantise_model import QuantiseSettings as QuantiseSettings
from .search.find_sequence import find_sequence
from .search.settings import SearchSettings
from .support.background import background
from .support.interrupts import patient
from .support.progress import Progress, silent
from .support.result_folder import check_file_place, result_folder
from .support.result_store import shared_store
from .support.text_files import json_lines, write_text
from .targets import Target
from .tuning.settings import TuneSettings
from .tuning.tune_model import check_measurable, find_tuning
from .verify.blame_import import blame_import
from .verify.settings import VerifySettings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .passes.sequence.sequence import Sequence as PassSequence
    from .search.knowledge import Knowledge
    from .tuning.database import AdoptedTuning, Database

#: seconds after Ctrl-C to end a measurement and write the results found so far
_SAVING_SECONDS = 30.0
#: a library for its accuracy alone, which no search changes but by rounding
_QUICK = SearchSettings(evaluations=1, max_extra_compute=None)


def profile(
    model: str | Path,
    target: Target,
    out: Path,
    *,
    name: str | None = None,
    progress: Progress = silent,
    clock: dict[str, float] | None = None,
    **options: Unpack[ImportKeywords],
) -> dict:
    """Measure every pass alone and after every other; write effects.json to `out`.

    Returns the content of effects.json; `clock` receives the seconds of each pass alone. Raises ModelError, OutputError.
    """
    check_file_place(out)
    imported = load(model, name, **options)
    from .search.effects.effects import effects

    found = effects(imported.graph, target, *port_names(imported.onnx), progress=progress, clock=clock)
    write_text(out, json_lines(found))
    return found


def learn(
    models: Sequence[str | Path],
    target: Target,
    out: Path,
    *,
    name: str | None = None,
    evaluations: int = 256,
    progress: Progress = silent,
    **options: Unpack[ImportKeywords],
) -> Knowledge:
    """Explore and search models, and add the results to the knowledge file `out`; create it if missing.

    `name` names a single model; default: its file name. A graph's earlier record is replaced. Raises ModelError,
    ConfigError if `out` is not a knowledge file of this version, OutputError.
    """
    if name is not None and len(models) > 1:
        raise ConfigError(f"--name {name}: {len(models)} models cannot share a name.", "Learn them one by one.")
    check_file_place(out)
    from .search.knowledge import Knowledge
    from .search.knowledge.store import read_records, write_records

    known = read_records(out) if out.exists() else ()
    from .search.learn import learn_models

    known = learn_models([load(model, name, **options) for model in models], target, known, evaluations, progress)
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
    progress: Progress = silent,
    compiled_next: bool = False,
    **options: Unpack[ImportKeywords],
) -> FootprintReport:
    """Search for a sequence; write sequence.json, footprint.json, search.json, trajectory.json to `out`.

    With a latency limit, front.json too. With a budget, the fastest library within it is chosen unless `search` has another objective. Nothing is
    executed, except a lossy winner. `compiled_next` keeps the code size of `tvm-default` in the store, made during the search. Raises ModelError,
    ConfigError for an unknown strategy, OutputError.
    """
    with result_folder(out) as folder:
        imported = load(model, name, **options)
        from .search.evaluate.tvm_default_code import default_code_task

        graph, ports = imported.graph, port_names(imported.onnx)
        tasks = [default_code_task(graph, target, *ports)] if compiled_next and shared_store().on_disk else []
        with background(*tasks) as results:
            result, front = find_sequence(imported, target, budget, search, progress, results.all)
            results.all()
        not_run, exact = Measured(ran=False, how="not-run: optimized, not compiled"), not result.sequence.lossy
        report = footprint_report(imported, target, budget, result.best, result.baseline, not_run, exact)
        write_search(result, front, {**imported.record, **search_record(search, budget, target)}, folder)
        write_footprint(report, folder)
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
    given: Path | None = None,
    origin: Provenance | None = None,
    data: str | Path | None = None,
    progress: Progress = silent,
    **options: Unpack[ImportKeywords],
) -> FootprintReport:
    """Build the library of a model, run it, compare and measure it; write all results to `out`.

    `given` is the file as given where `model` is the canonical file of an import: the library is compared with it. `origin` is the provenance of
    that file. `data` are samples, a few of which the library is compared on, too. `sequence` is a sequence.json; without it, a sequence is
    searched for first. `tuning` is a tuning.json of `tune`: its choices for kernels of this program are applied. Raises ModelError; SequenceError
    if a pass rejects the graph, or the tuning's layout belongs to another sequence or model; ConfigError if the tuning is for another target;
    NumericError if the library's outputs differ from ONNX Runtime's; ToolchainError; OutputError.
    """
    from .passes.sequence.sequence import read_sequence
    from .tuning.database import read_tuning
    from .verify.inputs import read_user_samples

    chosen = None if sequence is None else read_sequence(sequence)
    tuned = None if tuning is None else read_tuning(tuning, target)
    with result_folder(out):
        imported = load(model, name, given=given, origin=origin, **options)
    if data is not None:
        verify = replace(verify, samples=read_user_samples(data, imported.drawn_for))
    return compile_imported(
        imported, target, budget, out=out, sequence=chosen, tuning=tuned, search=search, verify=verify,
        progress=progress,
    )  # fmt: skip


def compile_imported(
    imported: ImportedModel,
    target: Target,
    budget: Budget | None = None,
    *,
    out: Path,
    sequence: PassSequence | None = None,
    tuning: AdoptedTuning | None = None,
    search: SearchSettings = SearchSettings(),
    verify: VerifySettings = VerifySettings(),
    progress: Progress = silent,
) -> FootprintReport:
    """Compile a model already imported; see `compile_model`."""
    from .artifacts.write import deliver_first
    from .search.deliver import check_as_searched, deliver
    from .search.evaluate.tvm_default import tvm_default
    from .search.evaluate.tvm_default_code import default_code_task
    from .search.first_library import first_library
    from .tuning.database import AdoptedTuning
    from .verify.build_plan import BuiltPlan, build_plan
    from .verify.stored_cases import cases_of

    chosen, untuned, tuned = sequence, AdoptedTuning(), tuning or AdoptedTuning()
    started, graph, ports = time.monotonic(), imported.graph, port_names(imported.onnx)
    baseline = None if chosen is None else tvm_default(graph, target, *ports)
    default_code = default_code_task(graph, target, *ports)
    cases = partial(cases_of, imported, verify)
    with (
        result_folder(out, replace_result) as folder, background(default_code, cases) as results,
        comparison_kept(out),
    ):  # fmt: skip

        def write(
            built: BuiltPlan, plan: PassSequence, place: Path, defects: tuple[Defect, ...] = (), code: int | None = None
        ) -> FootprintReport:
            measured = replace(built.measured, compile_seconds=round(time.monotonic() - started, 3))
            compared_with = baseline or tvm_default(graph, target, *ports)
            return write_library(
                imported, built, plan, target, budget, compared_with.compiled(code), measured, defects, place
            )

        def first(plan: PassSequence) -> str:
            (place := folder.with_name("first")).mkdir()  # next to the files of the library that is built at last
            report = write(
                built := build_plan(imported, plan, untuned.schedules, None, target, place, verify), plan, place
            )
            write_manifest(imported, built.lowered, target, plan, untuned, verify, place)
            return deliver_first(place, out, report)

        def build(plan: PassSequence) -> BuiltPlan:
            tuning = tuned if plan is asked else untuned  # its layout is that of one sequence
            return build_plan(
                imported, plan, tuning.schedules, tuning.layout, target, folder, verify, progress, results
            )

        result = front = None
        if chosen is None or baseline is None:
            with first_library(first, started) as early:
                result, front = find_sequence(imported, target, budget, search, progress, results.all, early)
            chosen, baseline = result.sequence, result.baseline
        asked = chosen
        chosen, built, defects = deliver(
            asked, build, folder, lambda: blame_import(imported.onnx, imported.given, verify.seed), result is not None
        )
        if result is not None:
            write_search(result, front, {**imported.record, **search_record(search, budget, target)}, folder, defects)
        report = write(built, chosen, folder, defects, results.of(0))
        if result is not None and chosen is asked:
            check_as_searched(result.best, report.best)
        applied, instead = (tuned, None) if chosen is asked else (untuned, (asked, tuned))
        write_manifest(imported, built.lowered, target, chosen, applied, verify, folder, instead)
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
    progress: Progress = silent,
    **options: Unpack[ImportKeywords],
) -> Database:
    """Tune the layouts, then the schedules, of a model's kernels; write tuning.json to `out`.

    Layouts are planes (NCHW) or channels last (NHWC). Kernels are measured one by one: timed if the target runs natively, else by counting the
    instructions an emulator executes. Choices are adopted if the whole library is better with them. With 0 seconds, nothing is measured, and the
    file says so. Without `sequence`, a sequence is searched for first. Ctrl-C during measurement ends it early, and the results so far are
    written; a second one ends everything. Raises ModelError, SequenceError, ToolchainError, OutputError; ConfigError if the target's programs
    cannot run here.
    """
    from .passes.sequence.sequence import read_sequence
    from .tuning.database import empty, write_database

    check_file_place(out)
    if settings.seconds <= 0:
        write_database(found := empty(target), out)  # independent of the seed, so that later stages need not rerun
        return found
    check_measurable(target)
    chosen = None if sequence is None else read_sequence(sequence)
    imported = load(model, name, **options)
    chosen = chosen or find_sequence(imported, target, None, search, progress)[0].sequence
    with patient(_SAVING_SECONDS):
        found = find_tuning(imported, chosen, target, settings, progress)
        write_database(found, out)
    return found


def profile_kernels(
    model: str | Path,
    target: Target,
    out: Path,
    *,
    sequence: Path | None = None,
    tuning: Path | None = None,
    name: str | None = None,
    search: SearchSettings = SearchSettings(),
    progress: Progress = silent,
    **options: Unpack[ImportKeywords],
) -> dict:
    """Time every kernel inside the library, next to its roofline; write kernels.json to `out`, and return its content.

    Without `sequence`, a sequence is searched for first; `tuning` is a tuning.json of `tune`. Raises ModelError, SequenceError,
    ToolchainError, OutputError; ConfigError if this machine does not run the target natively.
    """
    from .passes.sequence.sequence import read_sequence
    from .tuning import profile_kernels as kernels
    from .tuning.database import read_tuning

    check_file_place(out)
    kernels.check_native(target)
    chosen = None if sequence is None else read_sequence(sequence)
    tuned = None if tuning is None else read_tuning(tuning, target)
    imported = load(model, name, **options)
    chosen = chosen or find_sequence(imported, target, None, search, progress)[0].sequence
    found = kernels.profile_kernels(imported, chosen, target, progress, tuned)
    write_text(out, json_lines(found))
    return found


def evaluate(
    model: str | Path, targets: Sequence[Target], data: str | Path, *, result: Path | None = None,
    original: str | Path | None = None, given: Path | None = None, settings: EvaluateSettings = EvaluateSettings(),
    name: str | None = None, search: SearchSettings = _QUICK, progress: Progress = silent,
    remark: Callable[[str], None] = lambda text: None, **options: Unpack[ImportKeywords],
) -> list[AccuracyReport]:  # fmt: skip
    """Compare the file in ONNX Runtime, and the executed library of each target, by a metric over samples.

    `result` is the folder of a library that is there, of the only target; without it, one is compiled. `original` is the float file
    behind a quantised one, `given` as in `compile_model`: with it, `options` are those of the original. `remark` is told of casts,
    and of samples beyond the bound of verification. Raises ConfigError for samples that do not fit, ModelError, ToolchainError, NumericError.
    """
    from .evaluate.evaluate_libraries import evaluate_libraries

    build = partial(compile_model, model, name=name, given=given, search=search, progress=progress, **options)
    return evaluate_libraries(
        model, targets, data, build, result, original, given, ImportOptions(**options), settings, progress, remark
    )
