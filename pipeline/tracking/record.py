"""Collect the contents of an MLflow run from the files on disk. No MLflow here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..artifacts.evaluated import read_evaluated
from ..artifacts.html_report import run_page
from ..artifacts.locked import Lock
from ..artifacts.places import (
    ACCURACY,
    REMAKE,
    accuracy_file,
    compile_dir,
    optimize_dir,
    profile_dir,
    read_result,
)
from ..data.accuracy import AccuracyReport
from ..errors import PassfitError
from ..memory.files.footprint_file import report_text
from ..memory.footprint import FootprintReport
from ..params.params import Params
from ..support.text_files import decode, read_text
from ..targets import Target
from ..targets.catalogue import get_target
from .metrics import MetricValue, TimedFront, figures, sample_figures
from .note import note

#: goes into the content hash: raise it when runs are logged in another way, so that they are logged again
FORMAT = "8"
_FOOTPRINT = "footprint.json"


@dataclass(frozen=True)
class LoggedPort:
    """Input or output of a library: its name in the model, static shape, and NumPy dtype."""

    name: str
    shape: list[int]
    dtype: str


@dataclass(frozen=True)
class Io:
    """`io` of manifest.json: the prefix of the library's functions, and its ports in the order of their numbers."""

    name: str
    inputs: list[LoggedPort]
    outputs: list[LoggedPort]


@dataclass(frozen=True)
class Servable:
    """Library this machine can load, with its inputs and outputs."""

    library: Path
    io: Io


@dataclass(frozen=True)
class Delivery:
    """Content handed over: files of the result, card and BOM; `servable` is there if this machine can load the library.

    `content` is the sha256 of archive, shared library, header, inputs and outputs: another one is another model version.
    """

    files: tuple[Path, ...]
    card: str
    bom: str
    content: str
    servable: Servable | None


@dataclass(frozen=True)
class RunRecord:
    """Contents of a run: one model on one target. `content` is a sha256 over everything that is logged.

    `footprint` is the text of footprint.json as it is logged: with the budget of params.yaml, and whether that fits.

    `figures` are in the order in which they are logged; the bytes of everything are in `footprint`. `accuracy` is that on samples. `page` writes the
    page of these results; it is not part of `content`, since it tells the past too.
    """

    result: FootprintReport
    content: str
    footprint: str
    params: dict[str, str]
    tags: dict[str, str]
    figures: tuple[MetricValue, ...]
    note: str
    artifacts: tuple[Path, ...]
    delivery: Delivery
    accuracy: AccuracyReport | None = None
    page: Callable[[], str] | None = None

    @property
    def name(self) -> str:
        return f"{self.result.model} @ {self.result.target}"


def read_record(repo: Path, params: Params, model: str, target: str, lock: Lock | None = None) -> RunRecord | None:
    """Read the record of `model` on `target`, or None if nothing was compiled.

    Its accuracy is part of it if it is of this library and these samples, as far as `lock` tells.
    Raises PassfitError for a malformed file.
    """
    result = read_result(repo, model, target)
    if result is None:
        return None
    device = get_target(target, repo)
    result = result.within(params.budget(model, target), device.ram, device.flash)
    footprint = report_text(result)
    artifacts = tuple(_artifacts(repo, model, target))
    digests = {path.name: _digest(path) for path in artifacts}
    settings = {
        "strategy": params.search.strategy,
        "max-extra-compute": str(params.search.max_extra_compute),
        "max-slowdown": str(params.search.max_slowdown),
    }
    if params.search.objective is not None:
        settings["objective"] = params.search.objective
    if params.search.max_latency is not None:
        settings["max-latency"] = str(params.search.max_latency)
    evaluated = read_evaluated(repo, params, model, target, lock)
    accuracy = None if evaluated is None else evaluated.report
    if accuracy is not None:
        artifacts = (*artifacts, repo / accuracy_file(model, target))
        digests[ACCURACY] = _digest(artifacts[-1])
    trajectory = tuple(_trajectory(repo, model, target))
    listing = "\n".join(f"{digest} {name}" for name, digest in sorted(digests.items()))
    return RunRecord(
        result=result,
        content=_sha256(FORMAT, model, target, *settings.values(), footprint, listing),
        footprint=footprint,
        params={"model": model, "target": target, **settings},
        tags={f"passfit.{Path(name).stem}": digests[name][:12] for name in ("sequence.json",) if name in digests}
        | {"passfit.exact": str(result.exact).lower()},
        figures=(
            *figures(result, trajectory, _front(repo, model, target)),
            *(() if accuracy is None else sample_figures(accuracy)),
        ),
        note=note(result, accuracy),
        artifacts=artifacts,
        delivery=_delivery(repo, result, device, accuracy),
        accuracy=accuracy,
        page=lambda: run_page(repo, params, (model, target)),
    )


def _artifacts(repo: Path, model: str, target: str) -> Iterator[Path]:
    """Yield the artifacts, folder by folder: compiled files, the search's, the model's effects.

    The footprint is not among them: it is logged as it is judged.
    """
    compiled = sorted(path for path in (repo / compile_dir(model, target)).iterdir() if _is_result(path))
    yield from compiled
    seen = {path.name for path in compiled}
    for path in (
        repo / optimize_dir(model, target) / "sequence.json",
        repo / optimize_dir(model, target) / "search.json",
        repo / optimize_dir(model, target) / "trajectory.json",
        repo / optimize_dir(model, target) / "front.json",
        repo / profile_dir(model) / "effects.json",
    ):
        if path.is_file() and path.name not in seen:
            yield path


def _is_result(path: Path) -> bool:
    # DVC writes .gitignore files into output folders
    return path.is_file() and not path.name.startswith(".") and path.name != _FOOTPRINT


def _trajectory(repo: Path, model: str, target: str) -> Iterator[tuple[int, int]]:
    path = repo / optimize_dir(model, target) / "trajectory.json"
    if not path.is_file():
        return
    place = path.relative_to(repo)
    points = _read_json(path, place)
    if not isinstance(points, list):
        raise PassfitError(f"{place}: is not a list of points.", REMAKE)
    for point in points:
        if not (isinstance(point, dict) and _is_int(point.get("evaluation")) and _is_int(point.get("ram"))):
            raise PassfitError(f"{place}: a point needs `evaluation` and `ram`, not {point!r}.", REMAKE)
        yield point["evaluation"], point["ram"]


def _front(repo: Path, model: str, target: str) -> TimedFront | None:
    """Read front.json, which a search with a limit of latency leaves."""
    path = repo / optimize_dir(model, target) / "front.json"
    if not path.is_file():
        return None
    place = path.relative_to(repo)
    front = _read_json(path, place)
    try:
        return TypeAdapter(TimedFront).validate_json(json.dumps(front))
    except ValidationError as error:
        problem = error.errors()[0]
        raise PassfitError(f"{place}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}.", REMAKE) from None


def _is_int(value: object) -> bool:
    return type(value) is int


def _delivery(repo: Path, result: FootprintReport, device: Target, accuracy: AccuracyReport | None) -> Delivery:
    from ..card import bill_of_materials, model_card, read_facts

    servable = _servable(repo, result.model, result.target)
    folder = repo / compile_dir(result.model, result.target)
    facts = read_facts(folder, result, device, accuracy)
    files = tuple(folder / name for name in facts.digests if (folder / name).is_file())
    library = sorted({path for path in folder.iterdir() if path.suffix in (".a", ".so", ".h")})
    io = "" if servable is None else json.dumps(asdict(servable.io), sort_keys=True)
    content = _sha256(*(f"{_digest(path)} {path.name}" for path in library), io)
    return Delivery(files, model_card(facts), bill_of_materials(facts), content, servable)


def _servable(repo: Path, model: str, target: str) -> Servable | None:
    """Find the shared library and its manifest, which only the host's target has; none with a dtype that NumPy lacks."""
    folder = repo / compile_dir(model, target)
    libraries = sorted(folder.glob("lib*.so"))
    if not libraries:
        return None
    place = compile_dir(model, target) / "manifest.json"
    if not (repo / place).is_file():
        raise PassfitError(f"{place}: is missing beside {libraries[0].name}.", REMAKE)
    manifest = _read_json(repo / place, place)
    try:
        io = TypeAdapter(Io).validate_json(json.dumps(manifest.get("io") if isinstance(manifest, dict) else None))
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, ("io", *problem["loc"])))
        raise PassfitError(f"{place}: {field}: {problem['msg']}.", REMAKE) from None
    known = all(_is_numpy_dtype(port.dtype) for port in (*io.inputs, *io.outputs))
    return Servable(libraries[0], io) if known else None


def _is_numpy_dtype(name: str) -> bool:
    import numpy as np

    try:
        np.dtype(name)
    except TypeError:
        return False
    return True


def _read_json(path: Path, place: Path) -> object:
    return decode(object, read_text(path, REMAKE), str(place), REMAKE)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sha256(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
