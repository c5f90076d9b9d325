"""A model as every step takes it: its canonical ONNX, and the graph TVM made of that."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .frontend.source import resolve_source
from .memory.footprint import Start

if TYPE_CHECKING:
    import onnx
    from tvm.ir import IRModule

Shapes = Mapping[str, Sequence[int]]
Fixed = Mapping[str, object]


@dataclass(frozen=True)
class ImportedModel:
    """A canonical ONNX model, the graph TVM made of it, and the metric of the file it came from."""

    name: str
    onnx: onnx.ModelProto
    graph: IRModule
    start: Start


def import_onnx(model: str | Path, shapes: Shapes | None = None, fix: Fixed | None = None) -> tuple[onnx.ModelProto, Start]:
    """The canonical form of a model given by path or source, and the metric of the file as given.

    Raises ModelError for what cannot be read or compiled.
    """
    from .frontend.canonical import import_model
    from .frontend.start import mark_start, start_of

    path = resolve_source(str(model))
    canonical = import_model(path, shapes, fix)
    start = start_of(path, shapes or {}, fix or {})
    mark_start(canonical, start)
    return canonical, start


def load(model: str | Path, name: str | None = None, shapes: Shapes | None = None, fix: Fixed | None = None) -> ImportedModel:
    """Import a model; `name` defaults to that of its file."""
    from .frontend.relax import to_relax

    canonical, start = import_onnx(model, shapes, fix)
    file = Path(str(model).rpartition("!")[2])  # of a source, the path in the package: what is read is a cached copy
    stem = os.fsencode(file.stem).decode("utf-8", "replace")  # a file's name may be any bytes
    return ImportedModel(name or stem, canonical, to_relax(canonical), start)
