"""Compare files with the records of dvc.lock: their outputs, and the inputs they were run on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..support.digests import places_digest
from ..support.yaml_file import read_yaml
from .places import CELLS, cell_record, compile_dir, optimize_dir, tuning_file

#: files by path, as dvc.lock records them
Recorded = Mapping[str, Mapping[str, Any]]
CHANGED = "It was changed after it was made."


@dataclass(frozen=True)
class Lock:
    """Outputs of all stages, and the inputs of each, as dvc.lock records them.

    The stage `cells` has one output for the records of all cells; each of these holds the digests of the cell's results.
    """

    outputs: Recorded
    inputs: Mapping[str, Recorded]
    #: why all records of cells are altered, once that is known
    _records: dict[Path, str | None] = field(default_factory=dict, compare=False)

    @property
    def has_cells(self) -> bool:
        """Return whether the stage `cells` made the libraries."""
        return CELLS.as_posix() in self.outputs

    def altered_cell(self, repo: Path, model: str, target: str) -> str | None:
        """Return which result of a cell differs from its record, or this from dvc.lock; None if none does."""
        if repo not in self._records:
            self._records[repo] = altered_output(repo, [CELLS], self.outputs)
        place = cell_record(model, target)
        record = _plain(json.loads((repo / place).read_bytes())) if (repo / place).is_file() else {}
        for step, folder in (("optimize", optimize_dir(model, target)), ("compile", compile_dir(model, target))):
            if _plain(record.get(step)).get("writes") != places_digest([folder], repo):
                return self._records[repo] or f"{folder} differs from its digest in {place}. {CHANGED}"
        return self._records[repo]

    def has_tuning(self, model: str, target: str) -> bool:
        """Return whether a library was compiled by a tuning, as the stage `compile` reads one beside the stage `tune`."""
        return tuning_file(model, target).as_posix() in self.inputs.get(f"compile@{model}-{target}", ())


def read_lock(repo: Path) -> Lock | None:
    """Read dvc.lock; None in a repo whose libraries DVC does not make. Raises ConfigError for malformed YAML."""
    stages = _table(_yaml(repo / "dvc.yaml"), "stages")
    if not stages.keys() & {"compile", "cells"}:
        return None
    locked = _table(_yaml(repo / "dvc.lock"), "stages")
    if "cells" in stages:  # those that it replaced stay in dvc.lock
        locked = {name: stage for name, stage in locked.items() if name.partition("@")[0] in stages}
    outputs = [file for stage in locked.values() for file in _files(stage, "outs")]
    return Lock(dict(outputs), {name: dict(_files(stage, "deps")) for name, stage in locked.items()})


def changed_inputs(repo: Path, stage: str, lock: Lock, texts: Mapping[str, str]) -> list[str]:
    """List the inputs of a stage that changed since its run; `texts` are contents that some should have by now.

    Outputs of other stages are compared by their digests in dvc.lock. DVC computes those of all other files, and remembers
    them by size and time, so that large ones are read once. Versions of packages do not count.
    """
    inputs = {path: made for path, made in lock.inputs.get(stage, {}).items() if path != "out/toolchain.json"}
    found = [path for path in inputs if path in texts and _md5(texts[path].encode()) != inputs[path].get("md5")]
    made = [path for path in inputs if path in lock.outputs and path not in texts]
    found += [path for path in made if lock.outputs[path].get("md5") != inputs[path].get("md5")]
    rest = {path: inputs[path] for path in inputs if path not in texts and path not in made}
    return [*found, *(_changed_by_dvc(repo, stage, rest) if rest else ())]


def _changed_by_dvc(repo: Path, stage: str, files: Recorded) -> Iterable[str]:
    """Return the files that differ from their records by DVC; by their content where DVC cannot read its own stages."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(str(repo)) as dvc:
            found = dvc.stage.load_one(str((repo / "dvc.yaml").absolute()), stage)
            return [each.def_path for each in found.deps if each.def_path in files and each.workspace_status()]
    except (DvcException, OSError):
        return [path for path, made in files.items() if not is_recorded(repo / path, made)]


def altered_output(repo: Path, steps: Iterable[Path], recorded: Recorded) -> str | None:
    """Return which output below the folders or files `steps` differs from dvc.lock; None if none does."""
    for place, made in ((Path(path), made) for path, made in recorded.items()):
        if not any(place.is_relative_to(step) for step in steps):
            continue
        if not (repo / place).exists():
            return f"{place} is missing, which dvc.lock records; `dvc pull` fetches it."
        if not is_recorded(repo / place, made):
            return f"{place} differs from its md5 in dvc.lock. {CHANGED}"
    return None


def is_recorded(place: Path, made: Mapping[str, Any]) -> bool:
    """Return whether a file or folder has the content DVC recorded; one of DVC 2 counts as such, whose md5 is of text."""
    if made.get("hash") != "md5":
        return True
    if place.is_file():
        return _md5(place.read_bytes()) == made.get("md5")
    files = {path.relative_to(place).as_posix(): _md5(path.read_bytes()) for path in place.rglob("*") if path.is_file()}
    if "files" in made:  # of a remote that keeps versions
        return files == {str(each.get("relpath")): each.get("md5") for each in map(_plain, _list(made["files"]))}
    listing = [{"md5": digest, "relpath": name} for name, digest in sorted(files.items())]
    return f"{_md5(json.dumps(listing).encode())}.dir" == made.get("md5")


def _files(stage: object, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    listed = map(_plain, _list(_plain(stage).get(kind)))
    yield from ((str(each["path"]), each) for each in listed if "path" in each)


def _md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


def _yaml(path: Path) -> object:
    return read_yaml(path) if path.exists() else None


def _table(data: object, key: str) -> Mapping[str, Any]:
    return _plain(_plain(data).get(key))


def _list(data: object) -> Sequence[object]:
    """Return a parsed list; an empty one for anything else."""
    return data if isinstance(data, list) else []


def _plain(data: object) -> Mapping[str, Any]:
    """Return a parsed table; an empty one for anything else."""
    return data if isinstance(data, dict) else {}
