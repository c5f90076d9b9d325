"""Write the canonical ONNX of a model, and its origin beside it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ..frontend.imported_model import Fixed, Shapes, import_onnx
from ..frontend.source.model_record import model_record
from ..frontend.source.source import resolve_source
from ..support.result_folder import result_folder
from ..support.text_files import json_lines, write_text
from .places import ORIGIN

if TYPE_CHECKING:
    import onnx


def import_model_file(
    source: str | Path, shapes: Shapes | None, fix: Fixed | None, out: Path, package: str = ""
) -> onnx.ModelProto:
    """Write the canonical ONNX of a model to `out`, and its origin to origin.json beside it.

    `package` is the `pypi:` source of the file, if any. Returns the canonical model. Raises ModelError, OutputError.
    """
    from ..verify.integers.given_outputs import mark_given

    canonical, _ = import_onnx(source, shapes, fix)
    mark_given(canonical, resolve_source(str(source)), shapes, fix)
    data = canonical.SerializeToString(deterministic=True)
    record = model_record(resolve_source(str(source)), package or str(source), shapes, fix)
    with result_folder(out.parent) as folder:
        (folder / out.name).write_bytes(data)
        origin = {"canonical": hashlib.sha256(data).hexdigest(), "made_from": record}
        write_text(folder / ORIGIN, json_lines(origin))
    return canonical
