"""Keep a folder of results complete or untouched."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import OutputError
from .temporary_folder import temporary_folder

_CHOOSE = "Choose a folder you can write to."


@contextmanager
def result_folder(out: Path, move: Callable[[Path, Path], None] | None = None) -> Iterator[Path]:
    """Yield a temporary folder; its files replace `out`'s if the block ends well, by `move` or as `move_files` does.

    Otherwise `out` stays as it was. One process moves at a time: of two results, the folder holds the last one whole. Raises OutputError if `out` cannot be written, before any work is done.
    """
    if out.exists() and not out.is_dir():
        raise OutputError(f"'{out}' is a file, not a folder.", _CHOOSE)
    made = _missing_parents(out)
    with ExitStack() as stack:
        stack.callback(_remove_empty, made)
        try:
            out.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(temporary_folder(out, ".passfit-"))
        except OSError as error:
            raise _unwritable(out, error) from error
        try:
            yield folder
            with lock(out):
                (move or move_files)(folder, out)
        except OSError as error:
            if error.filename is not None and not Path(os.fsdecode(error.filename)).is_relative_to(out):
                raise  # of another folder
            raise _unwritable(out, error) from error


def move_files(folder: Path, out: Path) -> None:
    """Move the files of a folder and its subfolders to `out`; replace files of their names. Raises OSError."""
    for file in sorted(filter(Path.is_file, folder.rglob("*"))):
        file.chmod(0o644)
        (place := out / file.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, place)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep other processes out of the block for this folder, where the file system has locks."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def check_file_place(out: Path) -> None:
    """Check that `out` may become a file. Raises OutputError for a folder, or for a folder that is missing."""
    if out.is_dir():
        raise OutputError(f"'{out}' is a folder, not a file.", "Give a file name.")
    if not out.parent.is_dir():
        raise OutputError(f"The folder '{out.parent}' does not exist.", "Create it first.")


def _unwritable(out: Path, error: OSError) -> OutputError:
    return OutputError(f"'{out}' cannot be written: {error.strerror}.", _CHOOSE)


def _missing_parents(out: Path) -> list[Path]:
    return [path for path in (out, *out.parents) if not path.exists()]


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders that stayed empty, innermost first."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
