"""Compute digests and JSON records of inputs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

OriginRecord = dict[str, object]
#: the name of a file in a cache: a digest, or the rest of one
_BY_CONTENT = re.compile(r"[0-9a-f]{30,64}")
#: bytes of a file that are read at once
_PART = 1 << 20
#: bytes of a file from which on its digest is kept, and the seconds after its last change: another one may have the same time
_KEPT, _SETTLED = 1 << 24, 2.0


def digest_of(file: Path) -> str:
    """Return the sha256 of a file; that of a large one is computed again only if it changes. Raises OSError."""
    state = file.stat()
    if state.st_size < _KEPT or time.time() - state.st_ctime < _SETTLED:
        return _compute(file)
    return _kept(file, state.st_dev, state.st_ino, state.st_size, state.st_ctime_ns)


def _compute(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(_PART):
            digest.update(part)
    return digest.hexdigest()


@lru_cache
def _kept(file: Path, *_state: int) -> str:
    return _compute(file)


def is_content(file: Path, parts: Iterable[bytes]) -> bool:
    """Tell whether a file holds the bytes of `parts`. Raises OSError."""
    with file.open("rb") as opened:
        return all(opened.read(len(part)) == part for part in parts) and not opened.read(1)


def holds(file: Path, words: bytes) -> bool:
    """Tell whether a file holds `words` anywhere; it is read in parts. Raises OSError."""
    before = b""
    with file.open("rb") as opened:
        while part := opened.read(_PART):
            if words in before + part:
                return True
            before = part[1 - len(words) :]
    return False


def is_inside(file: Path, folder: Path) -> bool:
    """Tell whether a file is in `folder`, or a link to one there or in a cache.

    Caches of DVC and Hugging Face name files by their content.
    """
    target = Path(os.path.realpath(file))  # not `resolve`, which raises RuntimeError for links in a circle
    return target.is_relative_to(os.path.realpath(folder)) or bool(_BY_CONTENT.fullmatch(target.name))


def folders_digest(folders: Mapping[str, Path]) -> str:
    """Return the sha256 of all files below some folders, each under a name of its own; hidden files do not count."""
    files = {}
    for name, root in folders.items():
        for file in root.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith("."):
                files[f"{name}/{file.relative_to(root).as_posix()}"] = file
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\n".encode())
        digest.update(hashlib.sha256(files[name].read_bytes()).digest())
    return digest.hexdigest()


def places_digest(places: Iterable[Path], root: Path = Path()) -> str:
    """Return the sha256 of files and folders below `root` with their paths; a missing file has one too."""
    digest = hashlib.sha256()
    for place in places:
        found = sorted(filter(Path.is_file, (root / place).rglob("*"))) if (root / place).is_dir() else [root / place]
        for file in found:
            content = digest_of(file) if file.is_file() else "missing"
            digest.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def json_values(record: OriginRecord) -> OriginRecord:
    """Return the record as JSON reads it back."""
    return json.loads(json.dumps(record))
