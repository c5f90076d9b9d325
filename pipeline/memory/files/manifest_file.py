"""Read manifest.json: the passes, ports, origin and digests of a library, as `artifacts/write.py` writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from ...support.text_files import decode, read_text

Size = Annotated[int, Field(ge=0)]
#: identifier of C: a part of names of files
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z_0-9]*$")]
Dtype = Annotated[str, StringConstraints(pattern=r"^(bool|bfloat16|u?int(8|16|32|64)|float(16|32|64))$")]


@dataclass(frozen=True)
class _Port:
    name: str
    shape: tuple[Size, ...]
    dtype: Dtype
    form: str = ""
    assumed: str = ""


@dataclass(frozen=True)
class _Io:
    name: Identifier
    inputs: tuple[_Port, ...]
    outputs: tuple[_Port, ...]


@dataclass(frozen=True)
class _Source:
    source: str = ""
    sha256: str = ""
    producer: str = ""
    author: str = ""
    licence: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _MadeFrom:
    model: str | None = None
    shapes: dict[str, tuple[Size, ...]] = field(default_factory=dict)
    fix: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    inputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    forms: dict[str, dict[str, Any]] = field(default_factory=dict)
    io: str | None = None
    seed: int = 0
    cases: Size = 0


@dataclass(frozen=True)
class _Manifest:
    """Types of the values that readers rely on; every key may be missing, and others be there."""

    model: str = ""
    target: str = ""
    passes: tuple[str, ...] = ()
    exact: bool = True
    versions: dict[str, str] = field(default_factory=dict)
    io: _Io | None = None
    source: _Source = _Source()
    made_from: _MadeFrom = _MadeFrom()
    files: dict[str, str] = field(default_factory=dict)
    threads: Annotated[int, Field(ge=1)] = 1


def read_manifest(file: Path, hint: str) -> dict[str, Any]:
    """Read a manifest as an object of JSON. Raises ConfigError, with `hint` as the next step."""
    text = read_text(file, hint)
    decode(_Manifest, text, str(file), hint)
    return decode(dict, text, str(file), hint)
