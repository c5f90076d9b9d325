"""Keep small results of pure functions between processes, in one file per version of the code.

    <root>/<digest>.jsonl            ["plan 1f3a…", [3, 5, 8], "<check>"]        one line a result
    <root>/<digest>/objects/3c07…    bytes, such as an object of kernels         one file a result

It only saves time: a lost, damaged or missing line is computed again, to the same value. Every line is appended by one
write, so processes may share the file; a line without a matching check is passed over.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from .digests import source_files_digest
from .text_files import adapter_of

#: most bytes of a file: nothing is added beyond. And files kept: of the latest versions of the code, or of subjects
MOST_BYTES, KEPT, SUBJECTS = 16 << 20, 3, 8
#: about the most bytes of files of one kind
MOST_KEPT = 256 << 20
_PACKAGES = ("apache-tvm", "apache-tvm-ffi")


class ResultStore:
    """Hold JSON values by key; without a path, in this process alone.

    A new file leaves `kept` of its folder.
    """

    def __init__(self, path: Path | None, kept: int = KEPT):
        self._path, self._kept = path, kept
        self._known: dict[str, Any] = {}
        self._read = 0

    @property
    def on_disk(self) -> bool:
        """Return whether other processes may read the results."""
        return self._path is not None

    def get_or_make(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of `key`; `make` computes it if no process has kept it."""
        if key not in self._known:
            self._load()
        if key not in self._known:
            self._known[key] = make()
            self._append(key)
        return self._known[key]

    def get_or_make_as(self, kind: Any, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of `key` as a `kind`, such as a dataclass of tuples and numbers; see `get_or_make`."""
        codec = adapter_of(kind)
        return codec.validate_python(self.get_or_make(key, lambda: codec.dump_python(make(), mode="json")))

    def _load(self) -> None:
        """Read the lines appended since the last call."""
        if self._path is None:
            return
        with suppress(OSError), self._path.open("rb") as file:
            file.seek(self._read)
            lines, end, _ = file.read().rpartition(b"\n")
            self._read += len(lines) + len(end)
            self._known |= dict(filter(None, map(_entry, lines.splitlines())))

    def _append(self, key: str) -> None:
        if self._path is None:
            return
        line = json.dumps([key, self._known[key], _check(key, self._known[key])])
        with suppress(OSError):
            if not self._path.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                sweep_files(self._path.parent, self._path.suffix, self._kept)
            with self._path.open("ab", buffering=0) as file:
                if file.tell() < MOST_BYTES:
                    file.write(f"\n{line}\n".encode())  # the first end closes a line that a killed process left open


@cache
def shared_store() -> ResultStore:
    """Return the store in `$PASSFIT_STORE`, else in `~/.cache/passfit/store`; the value `off` keeps nothing on disk."""
    return ResultStore(_file())


def store_of(subject: str) -> ResultStore:
    """Return a store for large results of one subject, such as a graph; in a file of its own, see `shared_store`."""
    shared = _file()
    return ResultStore(None if shared is None else shared.with_suffix("") / f"{subject}.jsonl", SUBJECTS)


def kept_bytes(kind: str, key: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes of `key`, kept with a checksum in a file among those of a kind; `make` computes them once."""
    shared = _file()
    if shared is None:
        return make()
    file = shared.with_suffix("") / kind / key
    with suppress(OSError):
        found = file.read_bytes()
        if _checksum(found[4:]) == found[:4]:
            os.utime(file)
            return found[4:]
    made = make()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        if key.startswith("0"):  # by chance, at one file in 16
            _drop_oldest(file.parent, MOST_KEPT)
        new = file.with_name(f"{key}.{os.getpid()}.{threading.get_ident()}")
        try:
            new.write_bytes(_checksum(made) + made)
            os.replace(new, file)
        finally:
            new.unlink(missing_ok=True)
    return made


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(4, "big")


def _drop_oldest(folder: Path, most: int) -> None:
    """Remove the files that were not used for longest, if all have more than `most` bytes."""
    files = sorted(((each.stat(), each) for each in folder.iterdir()), key=lambda each: -each[0].st_mtime)
    for (_, file), total in zip(files, accumulate(stat.st_size for stat, _ in files)):
        if total > most:
            file.unlink(missing_ok=True)


def _file() -> Path | None:
    """Return the file of this version of the code; None if nothing is kept on disk."""
    chosen = os.environ.get("PASSFIT_STORE")
    if chosen == "off":
        return None
    try:
        root = Path(chosen) if chosen else Path.home() / ".cache" / "passfit" / "store"
    except RuntimeError:  # no home
        return None
    versions = ",".join(map(importlib.metadata.version, _PACKAGES))
    digest = hashlib.sha256(f"{source_files_digest()} {versions}".encode()).hexdigest()
    return root / f"{digest[:32]}.jsonl"


def _entry(line: bytes) -> tuple[str, Any] | None:
    """Read a line; None for an empty or a damaged one."""
    try:
        key, value, check = json.loads(line)
    except (ValueError, TypeError):
        return None
    return (key, value) if isinstance(key, str) and check == _check(key, value) else None


def _check(key: str, value: Any) -> str:
    return hashlib.sha256(json.dumps([key, value]).encode()).hexdigest()[:16]


def sweep_files(folder: Path, suffix: str, kept: int) -> None:
    """Remove the oldest files of a suffix, before a new one makes them `kept`."""
    files = sorted(folder.glob(f"*{suffix}"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[kept - 1 :]:
        file.unlink(missing_ok=True)
        shutil.rmtree(file.with_suffix(""), ignore_errors=True)
