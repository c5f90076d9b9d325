"""A folder of results that is complete or untouched."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import OutputError
from .interrupts import removed_by_force

_CHOOSE = "Choose a folder you can write to."


@contextmanager
def result_folder(out: Path) -> Iterator[Path]:
    """A temporary folder whose files replace those of `out` when the block ends well; else `out` stays as it was.

    Raises OutputError where `out` cannot be written, before any work is done.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"'{out}' is a file, not a folder.", _CHOOSE)
    made = _missing_parents(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".passfit-", dir=out))
    except OSError as error:
        _remove_empty(made)
        raise OutputError(f"'{out}' cannot be written: {error.strerror}.", _CHOOSE) from error
    try:
        with removed_by_force(folder):
            yield folder
        for file in sorted(filter(Path.is_file, folder.iterdir())):
            file.chmod(0o644)
            os.replace(file, out / file.name)
    except OSError as error:
        raise OutputError(f"'{out}' cannot be written: {error.strerror}.", _CHOOSE) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _remove_empty(made)


def _missing_parents(out: Path) -> list[Path]:
    return [path for path in (out, *out.parents) if not path.exists()]


def _remove_empty(folders: list[Path]) -> None:
    """Take back folders that were made for nothing, innermost first."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
