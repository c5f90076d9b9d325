"""Locate the results of each stage under `out/`, and read footprint.json back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.accuracy import AccuracyReport, parse_accuracy
from ..errors import ConfigError, PassfitError
from ..memory.files.footprint_file import parse_report
from ..support.text_files import read_text

if TYPE_CHECKING:
    from ..memory.footprint import FootprintReport

#: hint for anything missing or stale under `out/`
REMAKE = "Run `dvc repro`."


#: the record of an import, next to the canonical model: see `origin`
ORIGIN = "origin.json"
#: the model as given, next to the canonical model
GIVEN = "given.onnx"
#: the arena of a library, and that of the same kernels in the order given, nothing shared or split
PLAN, PLAN_BEFORE = "plan.json", "plan-before.json"
#: times of the kernels of a library, by the stage `kernels` or `passfit profile --kernels`
KERNELS = "kernels.json"
#: the accuracy of a library on its model's samples
ACCURACY = "accuracy.json"
#: the record of a tuning, next to tuning.json
ASKED = "asked.json"
#: the record of a quantisation, next to the model, and the picture of its curve
QUANTISATION, CURVE = "quantize.json", "curve.svg"
#: the records of the stage `cells`, of the results that it makes
CELLS = Path("out") / "cells"


def how_to_get(repo: Path, pairs: Iterable[tuple[str, str]], kept: Callable[[str, str], Path] | None = None) -> str:
    """Return the next step for missing results of models and targets: git's copy `kept` tells that others made them."""
    if any((repo / (kept or kept_footprint)(*pair)).is_file() for pair in pairs):
        return "Get it with `dvc pull`; without a remote, run `dvc repro`."
    return REMAKE


def canonical_model(model: str) -> Path:
    """Return the path of the canonical model of an import, relative to the repo."""
    return Path("out") / "models" / model / "model.onnx"


def given_model(model: str) -> Path:
    """Return the path of the model as given, next to the canonical one, relative to the repo."""
    return canonical_model(model).with_name(GIVEN)


def compile_dir(model: str, target: str) -> Path:
    """Return the folder of a library, its manifest and its measured footprint, relative to the repo."""
    return Path("out") / "compile" / model / target


def kept_footprint(model: str, target: str) -> Path:
    """Return the path of the footprint.json copy kept in git, relative to the repo. DVC keeps `out/`."""
    return Path("footprints") / model / f"{target}.json"


def accuracy_file(model: str, target: str) -> Path:
    """Return the path of the accuracy of a library on its model's samples, relative to the repo."""
    return Path("out") / "evaluate" / model / target / ACCURACY


def kept_accuracy(model: str, target: str) -> Path:
    """Return the path of the accuracy.json copy kept in git, relative to the repo."""
    return Path("accuracies") / model / f"{target}.json"


def quantised_model(model: str) -> Path:
    """Return the path of the quantised model that the stage `quantize` makes of a model's file, relative to the repo."""
    return Path("out") / "quantize" / model / "model.onnx"


def optimize_dir(model: str, target: str) -> Path:
    """Return the folder of a search's sequence and trajectory, relative to the repo."""
    return Path("out") / "optimize" / model / target


def cell_record(model: str, target: str) -> Path:
    """Return the path of the record that the stage `cells` keeps of a cell, relative to the repo."""
    return CELLS / model / f"{target}.json"


def tuning_file(model: str, target: str) -> Path:
    """Return the path of a tuning's tuning.json, relative to the repo."""
    return Path("out") / "tune" / model / target / "tuning.json"


def search_file(folder: Path) -> Path:
    """Return the search.json behind the results in `folder`: there, or in the optimize stage's folder."""
    there, place = folder / "search.json", folder.absolute()
    if there.is_file() or place.parent.parent.name != "compile":
        return there
    return place.parents[2] / "optimize" / place.parent.name / place.name / "search.json"


def profile_dir(model: str) -> Path:
    """Return the folder of a model's pass effects, relative to the repo."""
    return Path("out") / "profile" / model


def kernels_file(model: str, target: str) -> Path:
    """Return the path of the times of a library's kernels, relative to the repo."""
    return profile_dir(model) / target / KERNELS


def read_result(repo: Path, model: str, target: str) -> FootprintReport | None:
    """Return the compiled result of `model` on `target`; None if there is none. Errors: see `parse_result`."""
    place = compile_dir(model, target) / "footprint.json"
    try:
        text = (repo / place).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PassfitError(f"{place}: cannot be read: {error}.", REMAKE) from None
    return parse_result(text, str(place), model, target)


def read_accuracy(repo: Path, model: str, target: str) -> AccuracyReport | None:
    """Return the accuracy of `model` on `target`; None if it was not evaluated. Errors: see `parse_accuracy_of`."""
    place = accuracy_file(model, target)
    return (
        parse_accuracy_of(read_text(repo / place, REMAKE), str(place), model, target)
        if (repo / place).is_file()
        else None
    )


def parse_accuracy_of(text: str, place: str, model: str, target: str) -> AccuracyReport:
    """Return the content of an accuracy.json of `model` on `target`. Raises ConfigError for any other content."""
    report = parse_accuracy(text, place, REMAKE)
    if (report.model, report.target) != (model, target):
        raise ConfigError(f"'{place}': is about {report.model} @ {report.target}, not {model} @ {target}.", REMAKE)
    return report


def parse_result(text: str, place: str, model: str, target: str) -> FootprintReport:
    """Return the content of a footprint.json; `place` is how messages call it.

    Raises ConfigError when it is not JSON, lacks a field (as one written by an older passfit does), holds one of the
    wrong type, or is about another model or target.
    """
    report = parse_report(text, place, REMAKE)
    if (report.model, report.target) != (model, target):
        raise ConfigError(
            f"'{place}': is about {report.model} @ {report.target}, not {model} @ {target}: it is stale.", REMAKE
        )
    return report
