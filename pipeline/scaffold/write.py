"""Write several text files, or none of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import OutputError

#: the next step for a file of the user's that cannot be read as text
MEND = "Mend it, or move it away."


def write_all(files: Mapping[Path, str]) -> list[Path]:
    """Write every file with changed content; return the files written, in order.

    All are written under temporary names first, and put in place only after that. If one file cannot be put in place,
    the others are restored. Raises OutputError.
    """
    changed = {path: text for path, text in files.items() if not _holds(path, text)}
    ready: dict[Path, Path] = {}
    old: dict[Path, bytes | None] = {}
    try:
        for path, text in changed.items():
            new = path.with_name(f".{path.name}.passfit-new")
            ready[new] = path
            new.write_bytes(text.encode("utf-8"))
        for new, path in ready.items():
            before = path.read_bytes() if path.exists() else None
            os.replace(new, path)
            old[path] = before
    except OSError as error:
        for path, before in old.items():
            path.unlink() if before is None else path.write_bytes(before)
        for new in ready:
            new.unlink(missing_ok=True)
        raise OutputError(
            f"'{error.filename}' cannot be written: {error.strerror}.",
            "Check its permissions, or choose another folder.",
        ) from error
    return list(changed)


def _holds(path: Path, text: str) -> bool:
    """Return whether the file holds exactly `text`."""
    return path.is_file() and path.read_bytes() == text.encode("utf-8")
