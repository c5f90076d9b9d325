"""Read back everything that stages and commands left: of one result folder, or of a whole repo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.accuracy import AccuracyReport
from ..errors import ConfigError, PassfitError
from ..memory import read_plan, read_report
from ..memory.files.manifest_file import read_manifest
from ..params.params import Params, check_targets, declared
from ..report.fit import shorten
from ..report.levers import read_levers, read_search
from ..report.results import Capacity, Json, Pair, Result, Results
from ..support.text_files import decode, read_text
from ..verify.measure.run_cycles import read_cycles
from .evaluated import Evaluated, read_evaluated
from .failures import why_failed
from .locked import Lock, read_lock
from .places import (
    ACCURACY,
    KERNELS,
    PLAN,
    PLAN_BEFORE,
    REMAKE,
    compile_dir,
    how_to_get,
    kernels_file,
    parse_accuracy_of,
    profile_dir,
    read_result,
    search_file,
)
from .revision import history

if TYPE_CHECKING:
    from ..targets import Target

_FOOTPRINT = "footprint.json"
#: keys that are read of each file, and those of the objects listed there
_KEYS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "effects.json": {
        "target": frozenset(),
        "passes": frozenset({"spec"}),
        "pairs": frozenset({"first", "second", "effect", "delta", "alone"}),
    },
    "front.json": {
        "unit": frozenset(),
        "chosen": frozenset(),
        "points": frozenset({"lever", "ram", "latency", "extra_compute"}),
    },
    "kernels.json": {"run_ns": frozenset(), "kernels": frozenset({"step", "kernel", "nodes", "ns", "least_ns"})},
}
#: columns of a title: the models, since the folder of an experiment has another name
_TITLE = 60


def is_result(folder: Path) -> bool:
    """Return whether `folder` holds the result of `passfit compile` or `optimize`."""
    return (folder / _FOOTPRINT).is_file()


def read_folder(folder: Path) -> Result:
    """Read the result of `passfit compile` or `optimize` in `folder`. Raises ConfigError for a malformed file."""
    report = read_report(folder / _FOOTPRINT)
    saved = read_plan(folder / PLAN) if (folder / PLAN).is_file() else None
    search = search_file(folder)
    return Result(
        footprint=report,
        passes=_passes(folder / "sequence.json"),
        saved=saved,
        before=read_plan(folder / PLAN_BEFORE) if (folder / PLAN_BEFORE).is_file() else None,
        search=read_search(search) if search.is_file() else None,
        front=_object(search.with_name("front.json")),
        kernels=_object(folder / KERNELS),
        cycles=read_cycles(folder),
        levers=None if saved is None else read_levers(search, saved.plan.arena),
    )


def _read_evaluated_folder(folder: Path) -> Result:
    """Read the result in a folder with its accuracy. Raises ConfigError for a malformed file."""
    result = read_folder(folder)
    return replace(result, accuracy=accuracy_beside(folder, *result.pair))


def accuracy_beside(folder: Path, model: str, target: str) -> AccuracyReport | None:
    """Read the accuracy next to a result, or from the stage `evaluate`; None without one. Raises ConfigError."""
    there, place = folder / ACCURACY, folder.absolute()
    if not there.is_file() and place.parent.parent.name == "compile":
        there = place.parents[2] / "evaluate" / place.parent.name / place.name / ACCURACY
    if not there.is_file():
        return None
    return parse_accuracy_of(read_text(there, REMAKE), str(there), model, target)


def read_pair(repo: Path, params: Params, device: Target, model: str, lock: Lock | None = None) -> Result | None:
    """Read the result of `model` on `device` in `repo`, with its budget of params.yaml; None if there is none.

    Its accuracy is read if it is of the library and samples that are there, as far as `lock` tells.
    """
    report = read_result(repo, model, device.name)
    if report is None:
        return None
    found = read_folder(repo / compile_dir(model, device.name))
    judged = report.within(params.budget(model, device.name), device.ram, device.flash)
    capacity = Capacity(device.ram, device.flash)
    accuracy = read_evaluated(repo, params, model, device.name, lock) or Evaluated()
    return replace(
        add_kernel_times(repo, found),
        footprint=judged,
        capacity=capacity,
        declared=True,
        accuracy=accuracy.report,
        why_unevaluated=accuracy.why,
    )


def add_kernel_times(repo: Path, result: Result) -> Result:
    """Add the kernel times of the stage `kernels` in `repo` to a result without its own."""
    return result if result.kernels else replace(result, kernels=_object(repo / kernels_file(*result.pair)))


def read_repo(repo: Path, params: Params, only: Pair | None = None) -> Results:
    """Read the results that params.yaml declares, with their past in git; or `only` those of a model on a target.

    A result that cannot be read is missing, with the reason. Raises ConfigError if there are none.
    """
    from ..targets import load_catalogue

    catalogue = load_catalogue(repo)
    check_targets(params, catalogue)
    pairs = declared(params) if only is None else [only]
    results: list[Result] = []
    effects: dict[str, Json] = {}
    unread, missing = [], []
    lock = read_lock(repo)
    for model, target in pairs:
        try:
            result = read_pair(repo, params, catalogue[target], model, lock)
        except PassfitError as error:
            unread.append(f"{model} @ {target}: {error}")
            continue
        if result is None:
            failed = why_failed(repo, model, target)
            why = f": {failed}" if failed else f". {how_to_get(repo, [(model, target)])}"
            missing.append(f"{model} @ {target}: there is no result{why}")
        else:
            results.append(result)
    for model in dict(result.pair for result in results):
        try:
            found = _object(repo / profile_dir(model) / "effects.json")
        except PassfitError as error:
            unread.append(f"{model}: {error}")
            continue
        effects |= {} if found is None else {model: found}
    if not results:
        none = f"there are no results under out/compile. {how_to_get(repo, pairs)}"
        raise ConfigError(unread[0] if unread else none)
    return Results(
        title=shorten(", ".join(dict(pairs)), _TITLE),
        results=results,
        effects=effects,
        history=_history(repo, pairs),
        versions=_versions(repo / compile_dir(*results[0].pair)),
        missing=[*unread, *missing],
    )


def read_folders(folders: Sequence[Path]) -> Results:
    """Read result folders that belong to no repo. Raises ConfigError for one that holds no result."""
    results = []
    for folder in folders:
        if not is_result(folder):
            raise ConfigError(f"'{folder}' has no {_FOOTPRINT}.", "Give a folder that `passfit compile --out` wrote.")
        results.append(_read_evaluated_folder(folder))
    return Results(title=", ".join(result.name for result in results), results=results, versions=_versions(folders[0]))


def results_in(place: Path) -> dict[Pair, Result]:
    """Read the result in a folder, or all under out/compile, by model and target.

    Raises ConfigError where there are none.
    """
    folders = (
        [place] if is_result(place) else sorted(each.parent for each in place.glob(f"out/compile/*/*/{_FOOTPRINT}"))
    )
    found = {result.pair: result for result in map(_read_evaluated_folder, folders)}
    if not found:
        raise ConfigError(
            f"'{place}' has no results: neither {_FOOTPRINT} nor out/compile/.",
            "Run `dvc repro` there, or give a folder that `passfit compile --out` wrote.",
        )
    return found


def _history(repo: Path, pairs: Sequence[Pair]):
    try:
        return history(repo, pairs)
    except ConfigError:  # no git on this machine
        return ()


def _passes(path: Path) -> tuple[str, ...] | None:
    found = _object(path)
    return None if found is None else tuple(map(str, found.get("passes", ())))


def _versions(folder: Path) -> Mapping[str, str]:
    file = folder / "manifest.json"
    return dict(read_manifest(file, REMAKE).get("versions", {})) if file.is_file() else {}


def _object(path: Path) -> Json | None:
    """Read a JSON object; None without the file. Raises ConfigError for another content, or without a key it must have."""
    if not path.is_file():
        return None
    data = decode(dict, read_text(path, REMAKE), str(path), REMAKE)
    for key, columns in _KEYS.get(path.name, {}).items():
        if key not in data:
            raise ConfigError(f"'{path}': {key} is missing.", REMAKE)
        rows = data[key] if columns else []
        if not isinstance(rows, list) or any(not isinstance(row, dict) or columns - row.keys() for row in rows):
            raise ConfigError(f"'{path}': {key} is not a list of objects with {', '.join(sorted(columns))}.", REMAKE)
    return data
