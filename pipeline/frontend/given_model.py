"""Read the file as given, the reference of every comparison: with static inputs, and nothing else changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .canonical.bind_shapes import bind_inputs
from .canonical.read_onnx import read_model
from .canonical.static_metric import is_marked
from .source.side_files import side_files

if TYPE_CHECKING:
    import onnx


def given_model(
    path: Path, shapes: Mapping[str, Sequence[int]] | None = None, fix: Mapping[str, object] | None = None
) -> onnx.ModelProto | None:
    """Read the file `path` with `shapes` and `fix` bound; None for the canonical model of an import.

    Raises ModelError as an import does.
    """
    model = read_model(path)
    if is_marked({entry.key: entry.value for entry in model.metadata_props}):
        return None
    bind_inputs(model, shapes or {}, fix or {})
    return model


def given_bytes(
    path: Path, shapes: Mapping[str, Sequence[int]] | None = None, fix: Mapping[str, object] | None = None
) -> bytes:
    """Return the given model as one file; the bytes of `path` themselves where nothing is bound or loaded.

    Equal bytes take no more room in a cache that holds the file already. Raises ModelError as an import does.
    """
    model, content = given_model(path, shapes, fix), path.read_bytes()
    if model is None or not (shapes or fix or side_files(path)):
        return content
    return model.SerializeToString(deterministic=True)
