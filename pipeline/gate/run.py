"""Run the gate: read params.yaml, the catalogue and `out/`; return text and an exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..artifacts.evaluated import Evaluated, read_evaluated
from ..artifacts.failures import why_failed
from ..artifacts.locked import Lock, read_lock
from ..artifacts.places import how_to_get, read_result
from ..errors import ConfigError, OutputError, PassfitError, did_you_mean
from ..memory.footprint import FootprintReport
from ..params.params import Params, check_targets, declared, load_params
from ..report.results import Judgement
from .accuracy import Accuracies, accuracy_information
from .altered import why_altered
from .amounts import format_amounts
from .explanations import explanations
from .formats import FORMATS, Report, markdown
from .growth import parse_growth
from .history import Past, results_at
from .lines import add_lines, file_in_git
from .stale import why_stale
from .verdict import Pair, Verdict, unchecked_verdict
from .verdicts import TOGETHER, information, judge, no_data, notes, remarks

if TYPE_CHECKING:
    from ..targets import Catalogue

#: allowed growth with `--against` alone
DEFAULT_MAX_GROWTH = "5%"
_WAITING = (
    "the stages track and report wait for all models; `passfit track` and `passfit report` take those that are there"
)


@dataclass(frozen=True)
class GateResult:
    """Hold the text to print and the exit code.

    0: all limits hold. 1: a limit is exceeded. 2, which wins: a check was impossible, for lack of data, of a revision,
    of data from this model and these params, or of files as they were made.
    """

    text: str
    exit_code: int


def run_gate(
    repo: Path,
    *,
    against: str | None = None,
    max_growth: str | None = None,
    format: str = "text",
    explain: bool = False,
    every: bool = False,
) -> GateResult:
    """Judge every model × target of repo/params.yaml by its out/compile/…/footprint.json.

    `against` is a git revision to compare with, `max_growth` the allowed growth over it (`5%`, `16KiB`). With the format
    `github`, the table is also appended to the file named by $GITHUB_STEP_SUMMARY. `explain` names the cause of each
    failure and what lowers it. Text and Markdown show failures and the tightest row of each pair, or `every` row. Raises ConfigError and PassfitError
    (exit code 2) for a malformed option or params.yaml.
    """
    if format not in FORMATS:
        raise ConfigError(f"--format {format}: there is no such format.", did_you_mean(format, FORMATS))
    if max_growth is not None and against is None:
        raise ConfigError("--max-growth needs a revision to compare with.", "Give --against REVISION too.")
    growth = parse_growth(max_growth if max_growth is not None else DEFAULT_MAX_GROWTH)

    params = load_params(repo / "params.yaml")
    catalogue, results, broken, evaluated = _judged(repo, params)
    past = results_at(repo, against, results, evaluated) if against is not None else Past()

    accuracies = Accuracies(evaluated, past.accuracies)
    verdicts = add_lines(
        repo, judge(params, results, catalogue, past.results, growth, broken, past.missing, accuracies)
    )
    problems = (past.problem,) if past.problem else ()
    waiting = (_WAITING,) if broken and results and (repo / "dvc.yaml").is_file() else ()
    said = (*remarks(results), *notes(verdicts), *past.new, *waiting)
    failed = tuple(verdict for verdict in verdicts if not verdict.ok)
    causes = explanations(repo, params, catalogue, failed, against, accuracies) if explain else None
    known = (*information(results), *accuracy_information(accuracies, verdicts))
    report = Report(verdicts, said, against, problems, known, file_in_git(repo), causes, every)
    if format == "github":
        _append_summary(markdown(report))
    return GateResult(FORMATS[format](report), report.exit_code)


def why_refused(repo: Path, params: Params) -> dict[Pair, str]:
    """Return the failed checks of every declared model × target in one line each; empty where all hold. Errors: see `run_gate`."""
    return {pair: each.why for pair, each in judge_repo(repo, params).items()}


def judge_repo(repo: Path, params: Params) -> dict[Pair, Judgement]:
    """Return the failed checks, and the limit most in use, of every declared model × target.

    The sum of all models on its target is among them; growth, which is relative to a revision, is not. Errors: see `run_gate`.
    """
    catalogue, results, broken, evaluated = _judged(repo, params)
    verdicts = judge(params, results, catalogue, broken=broken, accuracies=Accuracies(evaluated))
    return {
        pair: _judgement([each for each in verdicts if (each.model, each.target) in (pair, (TOGETHER, pair[1]))])
        for pair in declared(params)
    }


def _judgement(verdicts: Sequence[Verdict]) -> Judgement:
    known = [each for each in verdicts if each.used is not None and each.limit is not None]
    tightest = max(known, key=lambda each: each.strain, default=None)
    return Judgement(
        "; ".join(each.why for each in verdicts if not each.ok),
        "" if tightest is None else _in_use(tightest),
        0.0 if tightest is None else tightest.strain,
    )


def _in_use(verdict: Verdict) -> str:
    """Say how much of a limit is in use."""
    assert verdict.used is not None and verdict.limit is not None
    used, limit = format_amounts(verdict.quantity, verdict.used, verdict.limit)
    return f"{verdict.quantity} {used} of {'at least ' if verdict.least else ''}{limit}"


def _judged(
    repo: Path, params: Params
) -> tuple[Catalogue, dict[Pair, FootprintReport], dict[Pair, Verdict], dict[Pair, Evaluated]]:
    """Read the catalogue, the results that can be judged, the verdicts on all others, and accuracies."""
    catalogue = _catalogue(repo)
    check_targets(params, catalogue)
    pairs = declared(params)
    if not pairs:
        raise ConfigError(f"{repo / 'params.yaml'}: no model × target is declared.", "Write `models:` and `targets:`.")
    lock = read_lock(repo)
    found, broken = _results(repo, params, catalogue, pairs, lock)
    evaluated = {pair: read_evaluated(repo, params, *pair, lock) for pair in found}
    return catalogue, found, broken, {pair: each for pair, each in evaluated.items() if each is not None}


def _catalogue(repo: Path) -> Catalogue:
    from ..targets import load_catalogue

    return load_catalogue(repo)


def _results(
    repo: Path, params: Params, catalogue: Catalogue, pairs: list[Pair], lock: Lock | None
) -> tuple[dict[Pair, FootprintReport], dict[Pair, Verdict]]:
    """Return the results that can be judged, and the verdicts on all others: missing, malformed, stale or altered.

    These say which stage failed at its last run.
    """
    found: dict[Pair, FootprintReport] = {}
    broken: dict[Pair, Verdict] = {}
    for model, target in pairs:
        try:
            result = read_result(repo, model, target)
            failed = why_failed(repo, model, target)
            if result is None:
                broken[model, target] = no_data(model, target, failed, how_to_get(repo, [(model, target)]))
                continue
            device = params.targets[target].apply(catalogue[target], model)
            stale = why_stale(repo, params, model, device, lock)
            altered = (
                None if stale else why_altered(repo, result, catalogue[target], params.budget(model, target), lock)
            )
        except PassfitError as error:
            broken[model, target] = unchecked_verdict(model, target, "data", str(error))
            continue
        since = f" The last run of {failed}" if failed else ""
        if stale is not None:
            broken[model, target] = unchecked_verdict(model, target, "stale", stale + since)
        elif altered is not None:
            broken[model, target] = unchecked_verdict(model, target, "altered", altered + since)
        else:
            found[model, target] = result
    return found, broken


def _append_summary(text: str) -> None:
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise OutputError(f"$GITHUB_STEP_SUMMARY: {summary}: {error.strerror}.", "Unset it, or correct it.") from None
