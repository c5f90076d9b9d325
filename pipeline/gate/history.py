"""The footprints of an earlier git revision."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..errors import ConfigError, PassfitError
from ..results import Result, compile_dir, kept_footprint, parse_result
from .verdicts import Pair


def results_at(repo: Path, revision: str, pairs: Iterable[Pair]) -> tuple[dict[Pair, Result], list[str]]:
    """The results that git holds at `revision`, and a warning for each that cannot be compared.

    A revision git does not have (a shallow clone, a new branch) is a warning: it says nothing about this result.
    Raises ConfigError for a revision that would be read as an option, and where there is no git repository.
    """
    if not revision or revision.startswith("-"):
        raise ConfigError(f"--against {revision!r} is not a git revision.", "Name a branch, a tag or a commit.")
    if _git(repo, "rev-parse", "--git-dir") is None:
        raise ConfigError(f"--against {revision}: {repo} is not in a git repository.", "Leave --against out.")
    if _git(repo, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
        return {}, [f"growth not checked: git has no revision {revision} here. In a shallow clone, fetch it first."]
    found: dict[Pair, Result] = {}
    warnings = []
    for model, target in pairs:
        try:
            result = _result_at(repo, revision, model, target)
        except PassfitError as error:
            warnings.append(f"{model} @ {target}: growth not checked: {error.what}")
            continue
        if result is None:
            kept = kept_footprint(model, target).as_posix()
            warnings.append(f"{model} @ {target}: growth not checked: {kept} is not in git at {revision}")
        else:
            found[model, target] = result
    return found, warnings


def _result_at(repo: Path, revision: str, model: str, target: str) -> Result | None:
    """What git holds at `revision`: the copy made for it, or the result itself in a repo that commits `out/`."""
    for path in (kept_footprint(model, target), compile_dir(model, target) / "footprint.json"):
        # ./ makes the path one of this folder, which may be below the top of the git repository
        text = _git(repo, "show", f"{revision}:./{path.as_posix()}")
        if text is not None:
            return parse_result(text, f"{revision}:{path.as_posix()}", model, target)
    return None


def _git(repo: Path, *arguments: str) -> str | None:
    """What git prints, or None where it says no."""
    try:
        done = subprocess.run(["git", *arguments], cwd=repo, capture_output=True, check=False)
    except FileNotFoundError:
        raise ConfigError("--against needs git, and there is none on the PATH.", "Install git.") from None
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None
