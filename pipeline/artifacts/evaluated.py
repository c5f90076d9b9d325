"""Read the accuracies of a repo, each only if it is of the present samples, settings, library and file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..data.accuracy import AccuracyReport
from ..errors import PassfitError
from ..params.params import DataParams, Params
from ..support.text_files import read_text, sorted_json
from .failures import EVALUATION, why_failed
from .locked import Lock, altered_output, changed_inputs
from .origin import evaluate_record
from .places import (
    REMAKE,
    accuracy_file,
    compile_dir,
    how_to_get,
    kept_accuracy,
    parse_accuracy_of,
    read_accuracy,
)
from .sample_files import evaluate_stage_name, settings_file, watched_by_evaluation


@dataclass(frozen=True)
class Evaluated:
    """Accuracy of a library; without a report, `why` it cannot be judged."""

    report: AccuracyReport | None = None
    why: str = ""
    kind: Literal["data", "stale", "altered"] = "data"


def read_evaluated(repo: Path, params: Params, model: str, target: str, lock: Lock | None) -> Evaluated | None:
    """Read the accuracy of a model on a target, or why it cannot be judged; None for a model without samples."""
    data = params.models[model].data
    if data is None:
        return None
    try:
        report = read_accuracy(repo, model, target)
        failed = why_failed(repo, model, target, EVALUATION)
        if report is None:
            said = f": {failed}" if failed else f". {how_to_get(repo, [(model, target)], kept_accuracy)}"
            return Evaluated(None, f"no data: there is no {accuracy_file(model, target).as_posix()}{said}")
        stale = _why_stale(repo, params, data, report, lock)
        altered = None if stale else _why_altered(repo, report, lock)
    except PassfitError as error:
        return Evaluated(None, str(error))
    since = f" The last run of {failed}" if failed else ""
    if stale or altered:
        kind, why = ("stale", stale) if stale else ("altered", altered)
        return Evaluated(None, f"{kind}: {why} {REMAKE}{since}", "stale" if stale else "altered")
    return Evaluated(report)


def _why_stale(repo: Path, params: Params, data: DataParams, report: AccuracyReport, lock: Lock | None) -> str | None:
    """Name the changes since an evaluation; None if nothing did."""
    model, target = report.model, report.target
    if report.data.source != data.source:
        return f"it was evaluated on {report.data.source}, and models.{model}.data names {data.source}."
    watched = watched_by_evaluation(repo, data)
    missing = next((each for each in watched if not (repo / each).exists()), None)
    if missing is not None:
        return f"{missing}, of the samples, is missing. Get it with `dvc pull`."
    settings = settings_file(model, "evaluate", target)
    if lock is None:
        return _changed_after(repo, report, watched)
    stage = f"{evaluate_stage_name(model)}@{target}"
    if stage not in lock.inputs:
        return f"dvc.lock does not record {stage}: `dvc repro` did not make it."
    changed = changed_inputs(repo, stage, lock, {settings: sorted_json(evaluate_record(params, model))})
    names = {settings: f"models.{model}.data, or verify,", compile_dir(model, target).as_posix(): "the library"}
    said = ", ".join(names.get(each, each) for each in changed)
    return f"{said} changed since it was evaluated." if changed else None


def _changed_after(repo: Path, report: AccuracyReport, watched: list[str]) -> str | None:
    """List the inputs newer than an evaluation; without DVC no digest of them is kept."""
    made = (repo / accuracy_file(report.model, report.target)).stat().st_mtime_ns
    library = compile_dir(report.model, report.target) / "manifest.json"
    for place in (library.as_posix(), *watched):
        files = [repo / place, *(repo / place).rglob("*")] if (repo / place).is_dir() else [repo / place]
        if any(file.is_file() and file.stat().st_mtime_ns > made for file in files):
            return f"{place} changed since it was evaluated."
    return None


def _why_altered(repo: Path, report: AccuracyReport, lock: Lock | None) -> str | None:
    """Return which file of an evaluation differs from dvc.lock, or from its copy in git; None if none does."""
    file, kept = accuracy_file(report.model, report.target), kept_accuracy(report.model, report.target)
    if lock is not None and (altered := altered_output(repo, (file, kept), lock.outputs)):
        return altered
    if not (repo / kept).exists():
        return None
    copy = parse_accuracy_of(read_text(repo / kept, REMAKE), str(kept), report.model, report.target)
    return None if copy == report else f"{kept} is not a copy of {file}."
