"""Read the footprints of an earlier git revision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..artifacts.git import check_revision, git
from ..artifacts.places import kept_footprint
from ..artifacts.revision import result_at
from ..errors import ConfigError, PassfitError
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
    if unknown := check_revision(repo, revision, "--against"):
        return Past(problem=f"growth not checked: {unknown}")
    try:
        then = _read_declared(repo, revision)
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
            result = result_at(repo, revision, model, target)
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


def _read_declared(repo: Path, revision: str) -> tuple[set[str], set[str]]:
    """Return the models and targets declared by params.yaml at `revision`; none without the file."""
    text = git(repo, "show", f"{revision}:./{_PARAMS}")
    data = parse_yaml(text or "", f"{revision}:{_PARAMS}")
    # not validated further: an older passfit may have had other keys
    sections = [data.get(name) if isinstance(data, dict) else None for name in ("models", "targets")]
    models, targets = (set(map(str, each)) if isinstance(each, dict) else set() for each in sections)
    return models, targets
