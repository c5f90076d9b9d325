"""Keep results of pure functions between processes, by the version of the code that computes them.

    <root>/<module>/<version>.jsonl        ["plan 1f3a…", [3, 5, 8], "<check>"]        one line a result
    <root>/objects/3c07…-<version>         bytes, such as an object of a kernel        one file a result

It only saves time: a lost, damaged or missing result is computed again, to the same value. Every line is appended by one
write, and every other file written whole, so processes may share them; what fails its check is passed over.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from .import_closure import code_digest
from .text_files import adapter_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter

#: most bytes of a file: nothing is added beyond. And how many such files are kept of a module, and of subjects
MOST_BYTES, KEPT, SUBJECTS = 16 << 20, 3, 8
#: about the most bytes of files of one kind
MOST_KEPT = 256 << 20
_PACKAGES = ("apache-tvm", "apache-tvm-ffi")
_OWN = f"{__package__.partition('.')[0]}."
_CACHED = type(cache(len))


class ResultStore:
    """Hold JSON values by key; without a path, in this process alone.

    A new file leaves the latest of its folder, as many bytes as `kept` full files have.
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
        written = partial(_written, codec, make)
        return codec.validate_python(self.get_or_make(key, written))

    def _load(self) -> None:
        """Read the lines appended since the last call."""
        if self._path is None:
            return
        with suppress(OSError), self._path.open("rb") as file:
            if self._read == 0:
                os.utime(self._path)
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
                _drop_oldest(self._path.parent, (self._kept - 1) * MOST_BYTES)
            with self._path.open("ab", buffering=0) as file:
                if file.tell() < MOST_BYTES:
                    file.write(f"\n{line}\n".encode())  # the first end closes a line that a killed process left open


def _written(codec: TypeAdapter, make: Callable[[], Any]) -> Any:
    return codec.dump_python(make(), mode="json")


class CodeStore(ResultStore):
    """Hold results in a store for each version of the code that computes them; see `modules_of`."""

    def __init__(self, folder: Path | None, subject: str = "", kept: int = KEPT):
        super().__init__(None, kept)
        self._folder, self._subject = folder, subject
        self._stores: dict[tuple[str, ...], ResultStore] = {}

    @property
    def on_disk(self) -> bool:
        """Return whether other processes may read the results."""
        return self._folder is not None

    def get_or_make(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value of `key`, computed by this version of the code of `make`."""
        modules = modules_of(make)
        if modules not in self._stores:
            self._stores[modules] = ResultStore(self._file(modules), self._kept)
        return self._stores[modules].get_or_make(key, make)

    def _file(self, modules: tuple[str, ...]) -> Path | None:
        if self._folder is None:
            return None
        first, *others = modules or ("other",)
        name = f"{first}+{hashlib.sha256(repr(others).encode()).hexdigest()[:8]}" if others else first
        return self._folder / name / "-".join(filter(None, (self._subject, f"{_version(modules)}.jsonl")))


def modules_of(make: Callable[[], Any]) -> tuple[str, ...]:
    """Return the modules of this package whose code a function runs: its own first, and those of what it holds."""
    found: dict[str, None] = {}
    seen: list[object] = []
    left: list[Any] = [make]
    while left:
        held = left.pop(0)
        if any(held is each for each in seen):
            continue
        seen.append(held)
        if isinstance(held, partial):
            left += [*held.args, *held.keywords.values(), held.func]
        elif isinstance(held, MethodType):
            left += [held.__func__, held.__self__]
        elif isinstance(held, _CACHED):
            left.append(held.__wrapped__)
        elif isinstance(held, FunctionType):
            found[held.__module__] = None
            for cell in held.__closure__ or ():
                with suppress(ValueError):  # not filled yet
                    left.append(cell.cell_contents)
        else:
            kind = held if isinstance(held, type) else type(held)
            found[kind.__module__] = None
            if held is not kind and kind.__module__.startswith(_OWN):  # functions that an object of ours holds
                values = getattr(held, "__dict__", {}).values()
                left += [each for each in values if isinstance(each, (FunctionType, MethodType, partial, _CACHED))]
    return tuple(each for each in found if each.startswith(_OWN))


@cache
def shared_store() -> ResultStore:
    """Return the store in `$PASSFIT_STORE`, else in `~/.cache/passfit/store`; the value `off` keeps nothing on disk."""
    root = _root()
    if root is not None:
        code_digest(f"{_OWN}api")  # reads every file, before workers are forked
    return CodeStore(root)


def store_of(subject: str) -> ResultStore:
    """Return a store for large results of one subject, such as a graph; in files of its own, see `shared_store`."""
    root = _root()
    return CodeStore(root and root / "subjects", subject, SUBJECTS)


def kept_bytes(kind: str, key: str, make: Callable[[], bytes]) -> bytes:
    """Return the bytes of `key`, kept with a checksum in a file among those of a kind; `make` computes them once."""
    root = _root()
    if root is None:
        return make()
    file = root / kind / f"{key}-{_version(modules_of(make))}"
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
        new = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
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


def _root() -> Path | None:
    """Return the folder of the store; None if nothing is kept on disk."""
    chosen = os.environ.get("PASSFIT_STORE")
    if chosen == "off":
        return None
    try:
        return Path(chosen) if chosen else Path.home() / ".cache" / "passfit" / "store"
    except RuntimeError:  # no home
        return None


@cache
def _version(modules: tuple[str, ...]) -> str:
    """Return 32 digits for the code that modules run, this package's and TVM's."""
    versions = ",".join(map(importlib.metadata.version, _PACKAGES))
    return hashlib.sha256(f"{code_digest(*modules)} {versions}".encode()).hexdigest()[:32]


def _entry(line: bytes) -> tuple[str, Any] | None:
    """Read a line; None for an empty or a damaged one."""
    try:
        key, value, check = json.loads(line)
    except (ValueError, TypeError):
        return None
    return (key, value) if isinstance(key, str) and check == _check(key, value) else None


def _check(key: str, value: Any) -> str:
    return hashlib.sha256(json.dumps([key, value]).encode()).hexdigest()[:16]
