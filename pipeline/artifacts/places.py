"""Locate the results of each stage under `out/`, and read footprint.json back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..errors import PassfitError
from ..memory import fits
from ..memory.footprint import Budget, Footprint, Measured, Start

#: hint for anything missing or stale under `out/`
REMAKE = "Run `dvc repro`."


@dataclass(frozen=True)
class Baseline:
    """Footprint of the same model through TVM's own pipeline, in bytes.

    `flash` is weights + code; `flash` and `code` are None if the kernels were not built.
    """

    name: str
    ram: int
    flash: int | None
    arena: int
    workspace: int
    weights: int
    kernels: int
    sum: int
    code: int | None = None


@dataclass(frozen=True)
class Result:
    """Content of a footprint.json: one model on one target."""

    model: str
    target: str
    start: Start
    best: Footprint
    baseline: Baseline
    measured: Measured
    budget: Budget
    fits: bool
    exact: bool = True


#: the record of an import, beside the canonical model: see `artifacts/origin.py`
ORIGIN = "origin.json"
#: the record of a tuning, beside tuning.json
ASKED = "asked.json"


def canonical_model(model: str) -> Path:
    """Return the path of the canonical model of an import, relative to the repo."""
    return Path("out") / "models" / model / "model.onnx"


def compile_dir(model: str, target: str) -> Path:
    """Return the folder of a library, its manifest and its measured footprint, relative to the repo."""
    return Path("out") / "compile" / model / target


def kept_footprint(model: str, target: str) -> Path:
    """Return the path of the footprint.json copy kept in git, relative to the repo. DVC keeps `out/`."""
    return Path("footprints") / model / f"{target}.json"


def optimize_dir(model: str, target: str) -> Path:
    """Return the folder of a search's sequence and trajectory, relative to the repo."""
    return Path("out") / "optimize" / model / target


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


def read_result(repo: Path, model: str, target: str) -> Result | None:
    """Read the compiled result of `model` on `target`; None if missing. Errors: see `parse_result`."""
    place = compile_dir(model, target) / "footprint.json"
    try:
        text = (repo / place).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PassfitError(f"{place}: cannot be read: {error}.", REMAKE) from None
    return parse_result(text, str(place), model, target)


def within(result: Result, budget: Budget, ram: int, flash: int) -> Result:
    """Return `result` judged by a budget; `ram` and `flash` are the target's capacities in bytes.

    Compilation reads no budget, so a new budget reruns no compilation: `budget` and `fits` are set afterwards.
    """
    return replace(result, budget=budget, fits=fits(result.best.ram, result.best.flash, budget, ram, flash))


def judged_text(text: str, result: Result) -> str:
    """Return the text of a footprint.json with `budget` and `fits` of `result`."""
    data = json.loads(text) | {"budget": asdict(result.budget), "fits": result.fits}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def parse_result(text: str, place: str, model: str, target: str) -> Result:
    """Parse the text of a footprint.json; `place` names it in messages.

    Raises PassfitError for invalid JSON, a missing field (as in files of an older passfit), a field of the wrong type,
    or another model or target.
    """
    try:
        result = TypeAdapter(Result).validate_json(text, strict=True)
    except ValidationError as error:
        problem = error.errors()[0]
        if problem["type"] == "json_invalid":
            raise PassfitError(f"{place}: not JSON: {problem['ctx']['error']}.", REMAKE) from None
        field = ".".join(map(str, problem["loc"])) or "the content"
        what = "is missing" if problem["type"] == "missing" else problem["msg"].replace("Input should", "should", 1)
        raise PassfitError(f"{place}: {field} {what}.", REMAKE) from None
    if (result.model, result.target) != (model, target):
        raise PassfitError(
            f"{place}: is about {result.model} @ {result.target}, not {model} @ {target}: it is stale.", REMAKE
        )
    if result.baseline.code is None:  # without the code, the file's flash is the weights alone
        return replace(result, baseline=replace(result.baseline, flash=None))
    return result
