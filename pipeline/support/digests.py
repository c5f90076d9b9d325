"""Compute digests and JSON records of inputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

OriginRecord = dict[str, object]


def digest_of(file: Path) -> str:
    """Return the sha256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def json_values(record: OriginRecord) -> OriginRecord:
    """Return the record as JSON reads it back."""
    return json.loads(json.dumps(record))
