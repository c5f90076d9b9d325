"""Compile an imported model: search, build, compare with ONNX Runtime, measure, write; the steps of a run in order."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .artifacts.origin import search_record
from .artifacts.write import (
    comparison_kept,
    deliver_first,
    replace_result,
    write_library,
    write_manifest,
    write_search,
)
from .frontend.imported_model import ImportedModel, port_names
from .memory.footprint import Baseline, Budget, Defect, FootprintReport
from .search.find_sequence import find_sequence
from .search.settings import SearchSettings
from .support.background import BackgroundResults, background
from .support.progress import Progress, silent
from .support.result_folder import result_folder
from .targets import Target
from .verify.blame_import import blame_import
from .verify.settings import VerifySettings

if TYPE_CHECKING:
    from .passes.sequence.sequence import Sequence as PassSequence
    from .tuning.database import AdoptedTuning
    from .verify.build_plan import BuiltPlan


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
    """Compile a model already imported; see `api.compile_model`."""
    from .search.deliver import check_as_searched, deliver
    from .search.evaluate.tvm_default_code import default_code_task
    from .search.first_library import first_library
    from .tuning.database import AdoptedTuning
    from .verify.build_plan import build_plan
    from .verify.stored_cases import cases_of

    run = _Run(imported, target, budget, verify)
    tasks = default_code_task(imported.graph, target, *run.ports), partial(cases_of, imported, verify)
    with result_folder(out, replace_result) as folder, background(*tasks) as results, comparison_kept(out):
        result = front = None
        if (asked := sequence) is None:
            deliver_early = partial(run.deliver_first, folder, out, results)
            with first_library(deliver_early, run.started, lambda: results.ready() or not imported.is_large) as early:
                result, front = find_sequence(imported, target, budget, search, progress, results.all, early)
            asked = result.sequence

        def adopted(plan: PassSequence) -> AdoptedTuning:
            """Return the tuning for the sequence asked for, which has its layout; none for another."""
            return tuning if tuning and plan is asked else AdoptedTuning()

        def build(plan: PassSequence) -> BuiltPlan:
            own = adopted(plan)
            return build_plan(imported, plan, own.schedules, own.layout, target, folder, verify, progress, results)

        plan, built, defects = deliver(
            asked, build, folder, lambda: blame_import(imported.onnx, imported.given, verify.seed), result is not None
        )
        if result is not None:
            write_search(result, front, {**imported.record, **search_record(search, budget, target)}, folder, defects)
        report = run.write(built, plan, folder, defects, None if result is None else result.baseline, results.of(0))
        if result is not None and plan is asked:
            check_as_searched(result.best, report.best)
        instead = None if plan is asked else (asked, adopted(asked))
        write_manifest(imported, built.lowered, target, plan, adopted(plan), verify, folder, instead)
    return report


@dataclass(frozen=True)
class _Run:
    """Write the libraries of one compilation, each with the seconds since its start."""

    imported: ImportedModel
    target: Target
    budget: Budget | None
    verify: VerifySettings
    started: float = field(default_factory=time.monotonic)

    @property
    def ports(self) -> tuple[list[str], list[str]]:
        return port_names(self.imported.onnx)

    def write(
        self,
        built: BuiltPlan,
        plan: PassSequence,
        folder: Path,
        defects: tuple[Defect, ...] = (),
        baseline: Baseline | None = None,
        default_code: int | None = None,
    ) -> FootprintReport:
        """Write the files of a library but its manifest.

        `baseline` is the footprint of tvm-default and `default_code` the bytes of its code, if known.
        """
        from .search.evaluate.tvm_default import tvm_default

        measured = replace(built.measured, compile_seconds=round(time.monotonic() - self.started, 3))
        baseline = baseline or tvm_default(self.imported.graph, self.target, *self.ports)
        return write_library(
            self.imported,
            built,
            plan,
            self.target,
            self.budget,
            baseline.compiled(default_code),
            measured,
            defects,
            folder,
        )

    def deliver_first(self, folder: Path, out: Path, results: BackgroundResults, plan: PassSequence) -> str:
        """Build `plan` next to `folder` during the search, and move its library to `out`; say so.

        The cases are those of `results`, if they are taken.
        """
        from .tuning.database import AdoptedTuning
        from .verify.build_plan import build_plan

        (place := folder.with_name("first")).mkdir()
        untuned = AdoptedTuning()
        taken = results if results.taken else None
        built = build_plan(self.imported, plan, untuned.schedules, None, self.target, place, self.verify, results=taken)
        report = self.write(built, plan, place)
        write_manifest(self.imported, built.lowered, self.target, plan, untuned, self.verify, place)
        return deliver_first(place, out, report)
