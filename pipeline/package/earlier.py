"""Check that a folder may take a package: it is empty, or holds an earlier one of its kind and library alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from ..errors import OutputError
from ..targets import Target
from .kinds import README, check_kind, places

#: the beginning of the README of every package: the library, then who wrote it
_WRITTEN = re.compile(r"# (\w+)\n\nThe model .* compiled by passfit ")


def check_folder(out: Path, kind: str, target: Target, m: str | None = None) -> set[str]:
    """Check that a package of the library `m`, or of any, may replace the content of `out`; return the files it may replace.

    Raises OutputError with the name of a file that no earlier package wrote, ConfigError for a kind that the target cannot have.
    """
    chosen, earlier = check_kind(kind, target), _library_in(out)
    patterns = places(chosen, earlier, target) if earlier and m in (None, earlier) else set()
    found = list(_files(out))
    own = {name for name in found if any(fnmatchcase(name, pattern) for pattern in patterns)}
    foreign = next((name for name in found if name not in own), None)
    if foreign is not None:
        whose = f" of the library {m}" if m else ""
        raise OutputError(
            f"'{out}' is not empty: '{foreign}' is of no earlier {kind} package{whose}.",
            "Choose another folder, or empty this one.",
        )
    return own


def _library_in(folder: Path) -> str:
    """Return the library whose package is in a folder; empty without one."""
    try:
        written = _WRITTEN.match((folder / README).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return ""
    return written[1] if written else ""


def _files(folder: Path) -> Iterator[str]:
    """Yield all files below a folder by their path in it, but for leftovers of killed processes."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".passfit-"))
        links = [name for name in folders if Path(root, name).is_symlink()]
        yield from (Path(root, name).relative_to(folder).as_posix() for name in sorted([*names, *links]))
