"""Read the footprints of an earlier git revision."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..artifacts.git import check_revision, git
from ..artifacts.places import kept_accuracy, kept_footprint, parse_accuracy_of
from ..artifacts.revision import result_at
from ..data.accuracy import AccuracyReport
from ..errors import ConfigError, PassfitError
from ..memory.footprint import FootprintReport
from ..support.yaml_file import parse_yaml
from .verdict import Pair

_PARAMS = "params.yaml"


@dataclass(frozen=True)
class Past:
    """Hold the results of a revision, accuracies too, and the reasons for missing ones.

    `missing`: pairs declared by the revision without a usable result; these are errors. `new`: remarks on pairs it does
    not declare. `problem`: why nothing could be read at all.
    """

    results: dict[Pair, FootprintReport] = field(default_factory=dict)
    missing: dict[Pair, str] = field(default_factory=dict)
    new: tuple[str, ...] = ()
    problem: str = ""
    accuracies: dict[Pair, AccuracyReport | str] = field(default_factory=dict)


def results_at(repo: Path, revision: str, pairs: Iterable[Pair], evaluated: Collection[Pair] = ()) -> Past:
    """Read the results of `pairs` from git at `revision`, and the accuracies of `evaluated` ones.

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
    known = [pair for pair in evaluated if pair in found]
    new += [
        f"{model} @ {target}: loss of accuracy not checked: models.{model} had data at {revision}, and has none now"
        for model, target in found
        if model in then[2] and (model, target) not in evaluated
    ]
    accuracies = {pair: each for pair in known if (each := _accuracy_at(repo, revision, pair, then[2])) is not None}
    return Past(found, missing, tuple(new), accuracies=accuracies)


def _accuracy_at(repo: Path, revision: str, pair: Pair, with_data: Collection[str]) -> AccuracyReport | str | None:
    """Read an accuracy from git at `revision`: why it is missing there, if its model had samples; else None."""
    place = kept_accuracy(*pair).as_posix()
    text = git(repo, "show", f"{revision}:./{place}")
    try:
        if text is not None:
            return parse_accuracy_of(text, f"{revision}:{place}", *pair)
    except ConfigError as error:
        return f"loss not checked: {error.what} Compare with a later revision."
    if pair[0] not in with_data:
        return None
    return (
        f"loss not checked: models.{pair[0]} has data at {revision}, but {place} is not in git there. "
        "Commit `accuracies/` after `dvc repro`, or compare with a revision that has it."
    )


def _read_declared(repo: Path, revision: str) -> tuple[set[str], set[str], set[str]]:
    """Return the models and targets declared by params.yaml at `revision`, and its models with data; none without the file."""
    text = git(repo, "show", f"{revision}:./{_PARAMS}")
    data = parse_yaml(text or "", f"{revision}:{_PARAMS}")
    # not validated further: an older passfit may have had other keys
    sections = [data.get(name) if isinstance(data, dict) else None for name in ("models", "targets")]
    models, targets = (each if isinstance(each, dict) else {} for each in sections)
    with_data = {str(name) for name, model in models.items() if isinstance(model, dict) and model.get("data")}
    return set(map(str, models)), set(map(str, targets)), with_data
