"""Record the file, shapes and values of an import."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from ...support.digests import OriginRecord, json_values
from .side_files import model_digest
from .source import is_package


def model_record(
    file: Path, source: str, shapes: Mapping | None, fix: Mapping | None, outputs: Collection[str] = ()
) -> OriginRecord:
    """Return the record of an import: digest of its files, package if any, values given and outputs chosen."""
    return json_values(
        {
            "model": model_digest(file),
            "source": source if is_package(source) else None,
            "shapes": {name: list(map(int, shape)) for name, shape in (shapes or {}).items()},
            "fix": {name: _plain(value) for name, value in (fix or {}).items()},
            "outputs": sorted(set(outputs)),
        }
    )


def _plain(value: object) -> object:
    """Return a constant as numbers and lists: the api takes numpy arrays too."""
    return value.tolist() if hasattr(value, "tolist") else value
