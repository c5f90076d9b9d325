"""The gate: params.yaml, the catalogue and `out/` in; text and an exit code out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..config import check_targets, load_params
from ..errors import ConfigError, OutputError, did_you_mean
from ..results import Result, read_result
from .formats import FORMATS, Report, markdown
from .growth import parse_growth
from .history import results_at
from .verdicts import Pair, declared, judge, remarks

#: with `--against` alone: more than this is worth a look
DEFAULT_MAX_GROWTH = "5%"


@dataclass(frozen=True)
class GateResult:
    """What to print, and the exit code: 0 everything holds, 1 a limit does not, 2 there is no data at all."""

    text: str
    exit_code: int


def run_gate(
    repo: Path, *, against: str | None = None, max_growth: str | None = None, format: str = "text"
) -> GateResult:
    """Judge every model × target of repo/params.yaml by its out/compile/…/footprint.json.

    `against` is a git revision to compare with, `max_growth` how much more than there is allowed (`5%`, `16KiB`).
    With the format `github`, the table is also appended to the file $GITHUB_STEP_SUMMARY names.
    Raises ConfigError and PassfitError (exit code 2) for a malformed option, params.yaml or footprint.json.
    """
    if format not in FORMATS:
        raise ConfigError(f"--format {format}: there is no such format.", did_you_mean(format, FORMATS))
    if max_growth is not None and against is None:
        raise ConfigError("--max-growth says how much, not since when.", "Give --against REVISION too.")
    growth = parse_growth(max_growth if max_growth is not None else DEFAULT_MAX_GROWTH)

    params = load_params(repo / "params.yaml")
    catalogue = _catalogue(repo)
    check_targets(params, catalogue)
    pairs = declared(params)
    if not pairs:
        raise ConfigError(f"{repo / 'params.yaml'}: no model × target is declared.", "Write `models:` and `targets:`.")
    results = _results(repo, pairs)
    previous, warnings = results_at(repo, against, results) if against is not None else ({}, [])

    verdicts = judge(params, results, catalogue, previous, growth)
    report = Report(tuple(verdicts), tuple(remarks(results) + warnings), against)
    if format == "github":
        _append_summary(markdown(report))
    return GateResult(FORMATS[format](report), _exit_code(report, results))


def _catalogue(repo: Path) -> dict:
    from ..targets import load_catalogue

    return load_catalogue(repo)


def _results(repo: Path, pairs: list[Pair]) -> dict[Pair, Result]:
    found = {pair: read_result(repo, *pair) for pair in pairs}
    return {pair: result for pair, result in found.items() if result is not None}


def _exit_code(report: Report, results: dict[Pair, Result]) -> int:
    if not results:
        return 2
    return 0 if report.ok else 1


def _append_summary(text: str) -> None:
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        with open(summary, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        raise OutputError(f"$GITHUB_STEP_SUMMARY: {summary}: {error.strerror}.", "Unset it, or correct it.") from None
