"""Read the result of a compilation: library, header, inputs and outputs, golden vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..artifacts.evaluated import read_evaluated
from ..artifacts.locked import read_lock
from ..artifacts.places import compile_dir
from ..data.accuracy import AccuracyReport
from ..errors import ConfigError
from ..frontend.source.provenance import LICENCE_FILE
from ..image import BOARD_FILES
from ..memory.files.footprint_file import parse_report
from ..memory.files.manifest_file import read_manifest
from ..memory.footprint import FootprintReport
from ..params.params import load_params
from ..support.digests import digest_of
from ..support.text_files import decode, read_text
from ..targets import Target, get_target
from ..verify.golden import GOLDEN, INPUTS, OUTPUTS
from ..verify.runner import numpy_dtype
from .kinds import source_places

_REMAKE = "Give a folder of `passfit compile` or `passfit image`, or make it again."


@dataclass(frozen=True)
class Golden:
    """Golden vectors: bytes of each input and output by case, the largest difference of each output, and their source."""

    inputs: Sequence[Sequence[bytes]]
    outputs: Sequence[Sequence[bytes]]
    tolerances: Sequence[float]
    source: str


@dataclass(frozen=True)
class Contents:
    """Result in `folder`: the library `m` of a model for a target, its manifest, its footprint as it
    is judged, and its golden vectors; `recorded` is golden.json, empty without them. `accuracy` is that on samples."""

    folder: Path
    m: str
    target: Target
    manifest: dict[str, Any]
    footprint: FootprintReport
    recorded: dict[str, Any]
    golden: Golden | None = None
    accuracy: AccuracyReport | None = None

    @property
    def archive(self) -> Path:
        """Return the path of the archive."""
        return self.folder / f"lib{self.m}.a"

    @property
    def header(self) -> Path:
        """Return the path of the header."""
        return self.folder / f"{self.m}.h"

    def sources(self) -> dict[str, str]:
        """Return the place in a package of each source of the library, by its name; none if the result has no sources."""
        return {name: place for name, place in source_places(self.m).items() if name in self.manifest["files"]}

    def ports(self, kind: str) -> list[dict[str, Any]]:
        """Return name, shape, dtype and bytes of all `inputs` or `outputs`."""
        return [port | {"nbytes": _nbytes(port)} for port in self.manifest["io"][kind]]


def read_contents(folder: Path, repo: Path) -> Contents:
    """Read a result; its target is one of the catalogue, or of `repo`.

    Raises ConfigError for a missing, altered or malformed file, TargetError for an unknown target.
    """
    manifest = read_manifest(folder / "manifest.json", _REMAKE)
    if missing := [key for key in ("model", "target", "io", "files") if key not in manifest]:
        raise ConfigError(f"'{folder / 'manifest.json'}' lacks {', '.join(missing)}.", _REMAKE)
    m = manifest["io"]["name"]
    needed = [
        f"lib{m}.a",
        f"{m}.h",
        "footprint.json",
        *(name for name in (INPUTS, OUTPUTS, GOLDEN) if GOLDEN in manifest["files"]),
        *(name for name in (LICENCE_FILE, *source_places(m)) if name in manifest["files"]),
    ]
    target = get_target(manifest["target"], repo)
    needed += BOARD_FILES if target.bare else ()
    for name in needed:
        if not (folder / name).is_file() or digest_of(folder / name) != manifest["files"].get(name):
            raise ConfigError(f"'{folder / name}' is missing, or was changed after it was made.", _REMAKE)
    footprint = parse_report(read_text(folder / "footprint.json", _REMAKE), str(folder / "footprint.json"), _REMAKE)
    recorded = {}
    if GOLDEN in manifest["files"]:
        recorded = decode(dict, read_text(folder / GOLDEN, _REMAKE), str(folder / GOLDEN), _REMAKE)
    judged, accuracy = _judged(footprint, folder, target, repo)
    found = Contents(folder, m, target, manifest, judged, recorded, accuracy=accuracy)
    return replace(found, golden=_golden(found)) if recorded else found


def _judged(
    footprint: FootprintReport, folder: Path, target: Target, repo: Path
) -> tuple[FootprintReport, AccuracyReport | None]:
    """Return the footprint within the budget of params.yaml, if a stage of `repo` wrote `folder` without one, and its accuracy."""
    pair = footprint.model, footprint.target
    if not (repo / "params.yaml").is_file() or folder.resolve() != (repo / compile_dir(*pair)).resolve():
        return footprint, None
    params = load_params(repo / "params.yaml")
    if pair[0] not in params.models or pair[1] not in params.targets:
        return footprint, None
    evaluated = read_evaluated(repo, params, *pair, read_lock(repo))
    return footprint.within(params.budget(*pair), target.ram, target.flash), evaluated.report if evaluated else None


def _golden(contents: Contents) -> Golden:
    recorded = contents.recorded
    sizes = {kind: [port["nbytes"] for port in contents.ports(kind)] for kind in ("inputs", "outputs")}
    inputs = _cut((contents.folder / INPUTS).read_bytes()[4:], sizes["inputs"], recorded["cases"])
    outputs = _cut((contents.folder / OUTPUTS).read_bytes(), sizes["outputs"], recorded["cases"])
    return Golden(inputs, outputs, recorded["tolerances"], recorded["outputs_of"])


def _cut(data: bytes, sizes: list[int], cases: int) -> list[list[bytes]]:
    """Cut the tensors of all cases out of a file, one after the other."""
    ends = np.cumsum([0, *(sizes * cases)])
    parts = [data[start:end] for start, end in pairwise(ends)]
    return [parts[number * len(sizes) : (number + 1) * len(sizes)] for number in range(cases)]


def _nbytes(port: dict[str, Any]) -> int:
    return int(np.prod(port["shape"], dtype=np.int64)) * numpy_dtype(port["dtype"]).itemsize
