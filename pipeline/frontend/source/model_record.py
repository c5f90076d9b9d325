"""Record the file, shapes and values of an import."""

from __future__ import annotations

from pathlib import Path

from ...support.digests import OriginRecord
from .import_options import ImportOptions
from .side_files import model_digest
from .source import is_package


def model_record(file: Path, source: str, options: ImportOptions = ImportOptions()) -> OriginRecord:
    """Return the record of an import: digest of its files, package if any, and its choices."""
    return {"model": model_digest(file), "source": source if is_package(source) else None, **options.record()}
