"""Results of a compilation, as far as they are the same each time."""

from __future__ import annotations

import json
from collections.abc import Container
from pathlib import Path

#: results of running a library: time and memory differ from run to run
MEASURED = {"footprint.json"}


def reproducible(folder: Path, without: Container[str] = MEASURED) -> dict[str, bytes]:
    """Read the files of a folder; the manifest without the digests of what is measured."""
    found = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.name not in without}
    if "manifest.json" in found:
        manifest = json.loads(found["manifest.json"])
        for name in MEASURED:
            del manifest["files"][name]
        found["manifest.json"] = json.dumps(manifest).encode()
    return found
