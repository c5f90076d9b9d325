"""Import a model for every later step: its canonical ONNX and its Relax graph."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..memory.footprint import Start
from ..support.digests import digest_of, is_content
from ..support.result_store import shared_store
from .source.import_options import ImportKeywords, ImportOptions
from .source.model_file import serialise
from .source.model_record import model_record
from .source.provenance import Provenance, add_metadata, provenance
from .source.side_files import side_files
from .source.source import resolve_source

if TYPE_CHECKING:
    import onnx
    from tvm.ir import IRModule
    from typing_extensions import Unpack

#: bytes of weights from which on those who need them once more, for a library or the reference, take turns
LARGE = 96 << 20


@dataclass(frozen=True)
class ImportedModel:
    """Canonical ONNX model, its Relax graph, and the metric of its file.

    `record` is that of the import: see `source.model_record`. `read_given` returns the model of the file, which its library is
    compared with; None where the canonical model is all there is.
    """

    name: str
    onnx: onnx.ModelProto
    graph: IRModule
    start: Start
    record: Mapping[str, object] = field(default_factory=dict)
    read_given: Callable[[], onnx.ModelProto | None] = lambda: None
    provenance: Provenance = Provenance("", "")

    @property
    def given(self) -> onnx.ModelProto | None:
        """Return the model of the file; a large one is read each time, as its weights are needed for moments alone."""
        return self.read_given()

    @property
    def drawn_for(self) -> onnx.ModelProto:
        """Return the model whose operators say which inputs are legal: that of the file, if there is one."""
        return self.given or self.onnx

    @property
    def is_large(self) -> bool:
        """Return whether its weights are too large to be taken by several processes at once."""
        return sum(tensor.ByteSize() for tensor in self.onnx.graph.initializer) >= LARGE


def import_onnx(model: str | Path, options: ImportOptions = ImportOptions()) -> tuple[onnx.ModelProto, Start]:
    """Import a model by path or source: its canonical form, and the metric of the file as given.

    Raises ModelError for a model that cannot be read or compiled.
    """
    from .canonical.read_onnx import read_model
    from .canonical.static_metric import start_of

    path = resolve_source(str(model))
    if options.given or not (path.is_file() and os.access(path, os.R_OK)) or side_files(path):
        return _imported(path, options)
    fresh: list[tuple[onnx.ModelProto, Start]] = []

    def changes_nothing() -> bool:
        fresh.append(_imported(path))
        return is_content(path, serialise(fresh[0][0]))

    # the stages of a pipeline import a canonical file again: known as such, it is read alone
    versions = map(importlib.metadata.version, ("onnx", "onnx-ir", "onnxscript"))
    if shared_store().get_or_make(f"canonical {digest_of(path)} {' '.join(versions)}", changes_nothing):
        return fresh[0] if fresh else ((model := read_model(path)), start_of(model))
    return fresh[0] if fresh else _imported(path)


def _imported(path: Path, options: ImportOptions = ImportOptions()) -> tuple[onnx.ModelProto, Start]:
    from .canonical.read_onnx import read_model
    from .canonical.shapes import without_values
    from .canonical.static_metric import mark_start, start_of
    from .canonicalise import import_read

    given = read_model(path, options)
    light = without_values(given)
    canonical = import_read(given, path, options)
    start = start_of(light, options)
    mark_start(canonical, start)
    return canonical, start


def load(
    model: str | Path,
    name: str | None = None,
    *,
    given: Path | None = None,
    origin: Provenance | None = None,
    **options: Unpack[ImportKeywords],
) -> ImportedModel:
    """Import a model; `name` defaults to that of its file.

    `given` is the file as given, and `origin` its provenance, where `model` is the canonical file of an earlier import.
    Raises ConfigError for a name that is none, ModelError for a model that cannot be read or compiled.
    """
    if name is not None:
        _check_name(name)
    from .canonical.lengths.fixed_outputs import fix_outputs
    from .given_model import given_model
    from .relax.to_relax import to_relax

    chosen = ImportOptions(**options)
    canonical, start = import_onnx(model, chosen)
    file = Path(str(model).rpartition("!")[2])  # of a source, the path in the package: the file read is a cached copy
    stem = os.fsencode(file.stem).decode("utf-8", "replace")  # a file's name may be any bytes
    record = model_record(resolve_source(str(model)), str(model), chosen)

    def read_given() -> onnx.ModelProto | None:
        reference = given_model(resolve_source(str(model)), chosen) if given is None else given_model(given)
        return reference and fix_outputs(reference, canonical)

    reference = read_given()
    origin = add_metadata(origin or provenance(str(model), str(record["model"])), reference or canonical)
    imported = ImportedModel(name or stem, canonical, to_relax(canonical), start, record, read_given, origin)
    return imported if reference is not None and imported.is_large else replace(imported, read_given=lambda: reference)


def _check_name(name: str) -> None:
    """Check that files may be called after a name. Raises ConfigError.

    What C identifiers cannot hold is written `_` there: see `codegen/names.py`.
    """
    if not name.isprintable() or set(name) & set("/\\") or not any(map(str.isalnum, name)):
        raise ConfigError(
            f"{name!a} is not the name of a model.",
            "Give letters and digits, with signs but / and \\ between; the folder is that of --out.",
        )


def port_names(model: onnx.ModelProto) -> tuple[list[str], list[str]]:
    """Return the names of the inputs and outputs of a canonical model, in order."""
    return [value.name for value in model.graph.input], [value.name for value in model.graph.output]
