"""Compute digests and JSON records of inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

OriginRecord = dict[str, object]


def digest_of(file: Path) -> str:
    """Return the sha256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


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
