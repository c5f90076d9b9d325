"""Write several text files, or none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import OutputError


def write_all(files: Mapping[Path, str]) -> list[Path]:
    """Write every file whose content differs; return those written, in order.

    All are written under temporary names first: only when that worked are they put in place. Raises OutputError.
    """
    changed = {path: text for path, text in files.items() if not _holds(path, text)}
    ready: dict[Path, Path] = {}
    try:
        for path, text in changed.items():
            new = path.with_name(f".{path.name}.passfit-new")
            ready[new] = path
            new.write_text(text, encoding="utf-8")
        for new, path in ready.items():
            os.replace(new, path)
    except OSError as error:
        for new in ready:
            new.unlink(missing_ok=True)
        raise OutputError(
            f"'{error.filename}' cannot be written: {error.strerror}.",
            "Check its permissions, or choose another folder.",
        ) from error
    return list(changed)


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode("utf-8")
