"""Record the provenance of a model: its file or package, its makers, and its licence where somebody states one."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .source import is_package

if TYPE_CHECKING:
    import onnx

#: name of the licence text in a folder of results
LICENCE_FILE = "LICENSE"
_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
#: line by which a text names its licence. Source: SPDX specification 2.3, annex E
_SPDX = re.compile(r"SPDX-License-Identifier:[ \t]*([^\n\r*]+)")
#: metadata of a model. Source: ONNX, IR.md, "Optional Metadata"; exporters spell the keys in several ways
_LICENCE_KEYS = ("model_license", "model_licence", "license", "licence")
_AUTHOR_KEYS = ("model_author", "author")


@dataclass(frozen=True)
class Licence:
    """Licence of a model: its name or SPDX expression, who states it, and its text; empty where unknown."""

    name: str = ""
    stated_by: str = ""
    text: bytes = b""


@dataclass(frozen=True)
class Provenance:
    """Provenance of a model: the name of its file or its `pypi:` source, the sha256 of its files, makers, licence."""

    source: str
    sha256: str
    producer: str = ""
    author: str = ""
    licence: Licence = Licence()

    @property
    def record(self) -> dict[str, object]:
        """Return the record in manifest.json; what is not known is left out."""
        licence = asdict(self.licence)
        licence["file"] = LICENCE_FILE if licence.pop("text") else ""
        facts = asdict(self) | {"licence": {key: value for key, value in licence.items() if value}}
        return {key: value for key, value in facts.items() if value}


def provenance(source: str, sha256: str, declared: str | None = None) -> Provenance:
    """Return the provenance of a model by path or `pypi:` source; `declared` is the licence its user states.

    Besides that, a licence is known by a text beside the file, and by the model's metadata: see `add_metadata`. The metadata
    of a package are not asked: they are of its code, and those who fetched the model before may have no network.
    """
    if is_package(source):
        return Provenance(source, sha256, licence=Licence(declared or "", "params.yaml" if declared else ""))
    return Provenance(Path(source).name, sha256, licence=_licence_beside(Path(source), declared))


def add_metadata(found: Provenance, model: onnx.ModelProto) -> Provenance:
    """Complete the provenance by the model's own metadata."""
    metadata = {entry.key.lower(): entry.value.strip() for entry in model.metadata_props}
    author = next((metadata[key] for key in _AUTHOR_KEYS if metadata.get(key)), "")
    producer = f"{model.producer_name} {model.producer_version}".strip()
    found = replace(found, author=author, producer=producer)
    key = next((key for key in _LICENCE_KEYS if metadata.get(key)), None)
    if key is None or found.licence.name:
        return found
    return replace(found, licence=replace(found.licence, name=metadata[key], stated_by=f"metadata of the model, {key}"))


def licence_beside(model: Path) -> Path | None:
    """Return the file of a licence text in the folder of a model, by its usual names. Raises OSError."""
    files = sorted(model.expanduser().parent.iterdir())
    return next((each for each in files if _FILE.fullmatch(each.name) and each.is_file()), None)


def _licence_beside(model: Path, declared: str | None) -> Licence:
    """Read the licence text in the folder of a model; what is `declared` names it."""
    try:
        file = licence_beside(model)
        text = b"" if file is None else file.read_bytes()
    except OSError:
        file, text = None, b""
    if declared:
        return Licence(declared, "params.yaml", text)
    if file is None:
        return Licence()
    named = _SPDX.search(text.decode("utf-8", "replace"))
    return Licence(named[1].strip() if named else "", f"{file.name} beside the model", text)
