"""Make temporary folders, and sweep the leftovers of killed processes.

The process that made a folder holds a lock on a file in it. The system drops that lock when the process ends.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import USED_UP, OutputError
from .interrupts import remove_by_force

#: the lock file of a folder in use
LOCK = ".passfit-lock"
#: seconds after which a folder of results without a lock is swept: versions before the lock left such folders
_ABANDONED = 24 * 3600


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield an empty folder below TMPDIR, removed at the end.

    Raises OutputError if TMPDIR is full or not writable.
    """
    folder = None
    try:
        with temporary_folder(Path(tempfile.gettempdir()), "passfit-") as folder:
            yield folder
    except OSError as error:
        name = error.filename and os.fsdecode(error.filename)
        if folder is not None and (error.errno not in USED_UP or (name and not Path(name).is_relative_to(folder))):
            raise  # of another folder
        where = f"'{folder.parent.parent}'" if folder else "TMPDIR"
        raise OutputError(
            f"No temporary file can be written in {where}: {error.strerror}.", "Set TMPDIR to a folder with free space."
        ) from error


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield an empty folder in `parent`, removed at the end; first sweep abandoned ones.

    Raises OSError.
    """
    sweep(parent, prefix)
    folder, lock = _make_locked(parent, prefix)
    try:
        files = folder / "files"
        files.mkdir()
        with remove_by_force(folder):
            yield files
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(parent: Path, prefix: str) -> None:
    """Remove temporary folders of `prefix` in `parent` that no live process holds; leave all others."""
    pattern = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}")
    try:
        names = [entry.name for entry in os.scandir(parent) if pattern.fullmatch(entry.name) and _is_own(entry)]
    except OSError:
        return  # the caller makes a folder here, and reports the problem
    for name in names:
        _remove_abandoned(parent / name)


def _is_own(entry: os.DirEntry) -> bool:
    return entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == os.geteuid()


def _remove_abandoned(folder: Path) -> None:
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        if folder.name.startswith(".") and _age(folder) > _ABANDONED:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # its process lives, or the file system has no locks
    finally:
        os.close(lock)


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def _make_locked(parent: Path, prefix: str) -> tuple[Path, int]:
    """Make and lock a new folder; return it and its lock's descriptor.

    A sweep between making and locking is noticed, and answered by a new folder.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if (folder / LOCK).exists():
                return folder, lock
        except BlockingIOError:
            pass  # a sweep holds it
        except OSError:
            return folder, lock  # a file system without locks: the folder stays if this process is killed
        os.close(lock)
