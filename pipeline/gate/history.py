"""Read the footprints of an earlier git revision."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..artifacts.places import compile_dir, kept_footprint, parse_result
from ..errors import ConfigError, PassfitError, did_you_mean
from ..memory.footprint import FootprintReport
from ..support.yaml_file import parse_yaml
from .verdicts import Pair

_PARAMS = "params.yaml"


@dataclass(frozen=True)
class Past:
    """Hold the results of a revision, and the reasons for missing ones.

    `missing`: pairs declared by the revision without a usable result; these are errors. `new`: remarks on pairs it does
    not declare. `problem`: why nothing could be read at all.
    """

    results: dict[Pair, FootprintReport] = field(default_factory=dict)
    missing: dict[Pair, str] = field(default_factory=dict)
    new: tuple[str, ...] = ()
    problem: str = ""


def results_at(repo: Path, revision: str, pairs: Iterable[Pair]) -> Past:
    """Read the results of `pairs` from git at `revision`.

    Raises ConfigError for a revision that git would parse as an option, and outside of a git repository.
    """
    if not revision or revision.startswith("-"):
        raise ConfigError(f"--against {revision!r} is not a git revision.", "Name a branch, a tag or a commit.")
    if _git(repo, "rev-parse", "--git-dir") is None:
        raise ConfigError(f"--against {revision}: {repo} is not in a git repository.", "Omit --against.")
    if _git(repo, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") is None:
        return Past(problem=f"growth not checked: git has no revision {revision} here. {_next_step(repo, revision)}")
    try:
        then = _declared_at(repo, revision)
    except ConfigError as error:
        return Past(problem=f"growth not checked: {error}")
    found: dict[Pair, FootprintReport] = {}
    missing: dict[Pair, str] = {}
    new = []
    for pair in pairs:
        model, target = pair
        if model not in then[0] or target not in then[1]:
            new.append(f"{model} @ {target}: growth not checked: new since {revision}, whose {_PARAMS} lacks it")
            continue
        try:
            result = _result_at(repo, revision, model, target)
        except PassfitError as error:
            missing[pair] = f"growth not checked: {error.what} Compare with a later revision."
            continue
        if result is None:
            kept = kept_footprint(model, target).as_posix()
            missing[pair] = (
                f"growth not checked: {revision} declares {model} @ {target}, but {kept} is not in git there. "
                "Commit `footprints/` after `dvc repro`, or compare with a revision that has it."
            )
        else:
            found[pair] = result
    return Past(found, missing, tuple(new))


def _next_step(repo: Path, revision: str) -> str:
    kinds = ("refs/heads", "refs/remotes", "refs/tags")
    branches = (_git(repo, "for-each-ref", "--format=%(refname:short)", *kinds) or "").split()
    fetch = "In a shallow clone, fetch it first: `git fetch origin REVISION`, or `fetch-depth: 0` in actions/checkout."
    return " ".join(filter(None, (did_you_mean(revision, branches[:20]), fetch)))


def _declared_at(repo: Path, revision: str) -> tuple[set[str], set[str]]:
    """Return the models and targets declared by params.yaml at `revision`; none without the file."""
    text = _git(repo, "show", f"{revision}:./{_PARAMS}")
    data = parse_yaml(text or "", f"{revision}:{_PARAMS}")
    # not validated further: an older passfit may have had other keys
    sections = [data.get(name) if isinstance(data, dict) else None for name in ("models", "targets")]
    models, targets = (set(map(str, each)) if isinstance(each, dict) else set() for each in sections)
    return models, targets


def _result_at(repo: Path, revision: str, model: str, target: str) -> FootprintReport | None:
    """Return the result git holds at `revision`: the copy made for it, or the result itself in a repo that commits `out/`."""
    for path in (kept_footprint(model, target), compile_dir(model, target) / "footprint.json"):
        # ./ makes the path relative to this folder, which may lie below the top of the git repository
        text = _git(repo, "show", f"{revision}:./{path.as_posix()}")
        if text is not None:
            return parse_result(text, f"{revision}:{path.as_posix()}", model, target)
    return None


def _git(repo: Path, *arguments: str) -> str | None:
    """Run git and return its output; None if it fails. Raises ConfigError if git is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=repo, capture_output=True, check=False)
    except FileNotFoundError:
        raise ConfigError("--against needs git, and there is none on the PATH.", "Install git.") from None
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None
