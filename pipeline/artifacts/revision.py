"""Read results of an earlier git revision: footprints from git; measurements, plans and sequences from DVC where it has them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from ..data.accuracy import AccuracyReport
from ..errors import ConfigError, PassfitError
from ..memory.files.plan_file import parse_plan
from ..memory.footprint import FootprintReport
from ..report.results import Commit, Pair, Result, Results
from .git import check_revision, git, git_files
from .places import PLAN, compile_dir, kept_accuracy, kept_footprint, parse_accuracy_of, parse_result

#: commits in the history, the latest ones
COMMITS = 40
_HASH = 9
_Copy = TypeVar("_Copy")
_SEQUENCE, _FOOTPRINT = "sequence.json", "footprint.json"


def result_at(repo: Path, revision: str, model: str, target: str) -> FootprintReport | None:
    """Return the result git holds at `revision`: the copy made for it, or the result itself in a repo that commits `out/`."""
    for path in (kept_footprint(model, target), compile_dir(model, target) / _FOOTPRINT):
        # ./ makes the path relative to this folder, which may lie below the top of the git repository
        text = git(repo, "show", f"{revision}:./{path.as_posix()}")
        if text is not None:
            return parse_result(text, f"{revision}:{path.as_posix()}", model, target)
    return None


def results_at_revision(repo: Path, revision: str, option: str = "") -> dict[Pair, Result]:
    """Return the results that git has at `revision`, by model and target.

    Raises ConfigError for an unknown revision, and for one without results; `option` is how messages call it.
    """
    if unknown := check_revision(repo, revision, option):
        raise ConfigError(unknown)
    found = {}
    files = _Files(repo, revision)
    for model, target in _kept_pairs(repo, revision):
        report = result_at(repo, revision, model, target)
        if report is not None:
            found[model, target] = files.result(report)
    if not found:
        raise ConfigError(
            f"{revision} has no footprints/ in git.",
            "Commit `footprints/` after `dvc repro`, or name a later revision.",
        )
    return found


def history(repo: Path, pairs: Iterable[Pair]) -> tuple[Commit, ...]:
    """Return the last commits that changed footprints or accuracies of `pairs`, in order of time.

    None outside of a git repository. Files of an older passfit, which cannot be read, are left out.
    """
    listed = git(repo, "log", f"-{COMMITS}", "--format=%H %s", "--", "footprints", "accuracies")
    if not listed:
        return ()
    commits = [line.partition(" ") for line in reversed(listed.splitlines())]
    wanted = [(sha, pair) for sha, _, _ in commits for pair in pairs]
    footprints = _copies(repo, wanted, kept_footprint, parse_result)
    accuracies = _copies(repo, wanted, kept_accuracy, parse_accuracy_of)
    return tuple(
        Commit(sha[:_HASH], subject, footprints.get(sha, {}), accuracies.get(sha, {})) for sha, _, subject in commits
    )


def _copies(
    repo: Path,
    wanted: Iterable[tuple[str, Pair]],
    kept: Callable[[str, str], Path],
    parse: Callable[[str, str, str, str], _Copy],
) -> dict[str, dict[Pair, _Copy]]:
    """Read the copies kept in git of pairs at commits; those of an older passfit, which cannot be read, are left out."""
    places = {(sha, kept(*pair).as_posix()): (sha, pair) for sha, pair in wanted}
    found: dict[str, dict[Pair, _Copy]] = {}
    for place, text in git_files(repo, places).items():
        sha, pair = places[place]
        with suppress(PassfitError):
            found.setdefault(sha, {})[pair] = parse(text, place[1], *pair)
    return found


def earlier_results(repo: Path, results: Results) -> dict[Pair, tuple[str, Result]]:
    """Return the last result of git's history that differs from each, after the name of its commit."""
    found, files = {}, lru_cache(lambda commit: _Files(repo, commit))
    for result in results.results:
        pair, now = result.pair, result.accuracy
        others = (each for each in reversed(results.history) if pair in each.footprints)
        commit = next(
            (
                each
                for each in others
                if each.footprints[pair].best != result.footprint.best
                or (now is not None and pair in each.accuracies and each.accuracies[pair].value != now.value)
            ),
            None,
        )
        if commit is not None:
            earlier = files(commit.hash).result(commit.footprints[pair])
            found[pair] = f"{commit.hash} ({commit.subject})", earlier
    return found


def _kept_pairs(repo: Path, revision: str) -> Iterator[Pair]:
    """Yield the models and targets with a footprint at a revision, each once: copies, and results in a repo that commits `out/`."""
    found: dict[Pair, None] = {}
    for folder in ("footprints", "out/compile"):
        listed = git(repo, "ls-tree", "-r", "--name-only", "-z", f"{revision}:./{folder}") or ""
        for path in map(Path, filter(None, listed.split("\0"))):
            if folder == "footprints" and path.suffix == ".json" and len(path.parts) == 2:
                found[path.parts[0], path.stem] = None
            elif path.name == _FOOTPRINT and len(path.parts) == 3:
                found[path.parts[0], path.parts[1]] = None
    yield from found


class _Files:
    """Files below `out/` at a revision: from git, or from DVC's cache or remote."""

    def __init__(self, repo: Path, revision: str):
        self._files, self._repo, self._revision = None, repo, revision
        folder = repo.resolve()
        root = next((above for above in (folder, *folder.parents) if (above / ".dvc").is_dir()), None)
        if root is None:
            return
        from dvc.api import DVCFileSystem
        from dvc.exceptions import DvcException

        self._errors = (OSError, DvcException)
        self._below = folder.relative_to(root)
        try:
            self._files = DVCFileSystem(str(root), rev=revision)
        except self._errors:
            return

    def result(self, report: FootprintReport) -> Result:
        """Add measurements, plan and sequence to a footprint, if they can be read."""
        folder = compile_dir(report.model, report.target)
        report = self._add_measurements(report, folder / _FOOTPRINT)
        plan, sequence = (self._read(folder / name) for name in (PLAN, _SEQUENCE))
        try:
            saved = None if plan is None else parse_plan(plan, str(folder / PLAN))
        except ConfigError:  # of an older passfit
            saved = None
        passes = None if sequence is None else tuple(json.loads(sequence)["passes"])
        return Result(report, passes, saved, accuracy=self._accuracy(report))

    def _accuracy(self, report: FootprintReport) -> AccuracyReport | None:
        place = kept_accuracy(report.model, report.target)
        text = git(self._repo, "show", f"{self._revision}:./{place.as_posix()}")
        try:
            return None if text is None else parse_accuracy_of(text, str(place), report.model, report.target)
        except ConfigError:  # of another passfit
            return None

    def _add_measurements(self, report: FootprintReport, place: Path) -> FootprintReport:
        """Add the times and errors of the library to the copy of its footprint that git keeps."""
        text = self._read(place)
        try:
            whole = None if text is None else parse_result(text, str(place), report.model, report.target)
        except ConfigError:  # of an older passfit
            whole = None
        same = whole is not None and whole.best == report.best
        return replace(report, measured=whole.measured) if whole is not None and same else report

    def _read(self, place: Path) -> str | None:
        text = git(self._repo, "show", f"{self._revision}:./{place.as_posix()}")
        if text is not None or self._files is None:
            return text
        try:
            return self._files.read_text((self._below / place).as_posix(), encoding="utf-8")
        except self._errors:
            return None
