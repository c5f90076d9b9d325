"""Write the canonical ONNX of a model, with the model as given and its origin next to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import PassfitError
from ..frontend.given_model import write_given
from ..frontend.imported_model import ImportedModel, import_onnx, load
from ..frontend.source.import_options import ImportOptions
from ..frontend.source.model_file import parse_file, serialise
from ..frontend.source.model_record import model_record
from ..frontend.source.source import resolve_source
from ..support.digests import digest_of
from ..support.result_folder import result_folder
from ..support.text_files import json_lines, write_text
from .places import GIVEN, ORIGIN, canonical_model, given_model

if TYPE_CHECKING:
    import onnx


def import_model_file(
    source: str | Path,
    out: Path,
    options: ImportOptions = ImportOptions(),
    package: str = "",
) -> onnx.ModelProto:
    """Write the canonical ONNX of a model to `out`; next to it the model as given, and its origin to origin.json.

    `package` is the `pypi:` source of the file, if any. Returns the canonical model. Raises ModelError, OutputError.
    """
    canonical, _ = import_onnx(source, options)
    file = resolve_source(str(source))
    record = model_record(file, package or str(source), options)
    with result_folder(out.parent) as folder:
        with (folder / out.name).open("wb") as opened:
            opened.writelines(serialise(canonical))
        del canonical  # before the other model is held
        origin = {"canonical": digest_of(folder / out.name), "made_from": record}
        write_given(folder / GIVEN, file, options)
        write_text(folder / ORIGIN, json_lines(origin))
    return parse_file(out)


def load_imported(repo: Path, model: str) -> ImportedModel | None:
    """Load a model of a repo from the files of its import; None if they are not there, or cannot be read."""
    file, given = repo / canonical_model(model), repo / given_model(model)
    if not file.is_file():
        return None
    try:
        return load(file, model, given=given if given.is_file() else None)
    except PassfitError:
        return None
