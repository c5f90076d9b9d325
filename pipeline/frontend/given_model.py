"""Read the file as given, the reference of every comparison: with static inputs, and answers to unknown categories."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from .canonical.lengths.fixed_outputs import bound_results
from .canonical.opset import declare_sets
from .canonical.ports.apply import bind_ports
from .canonical.read_onnx import CLASSICAL, all_nodes, metadata_of, read_model
from .canonical.static_metric import is_marked
from .source.import_options import ImportOptions
from .source.model_file import serialise
from .source.side_files import side_files

if TYPE_CHECKING:
    import onnx


def given_model(
    path: Path,
    options: ImportOptions = ImportOptions(),
) -> onnx.ModelProto | None:
    """Read the file `path` with the choices of an import bound; None for the canonical model of an import.

    Raises ModelError as an import does.
    """
    model = read_model(path, options)
    if is_marked(metadata_of(model)):
        return None
    declare_sets(model)
    bind_ports(model, options)
    bound_results(model, options.bounds)
    _answer_unknown(model)
    return model


def _answer_unknown(model: onnx.ModelProto) -> None:
    """Let categories that an encoder does not know be zeros, in place, as libraries give them: ONNX Runtime may stop there."""
    for node in all_nodes(model.graph):
        if (node.domain, node.op_type) == (CLASSICAL, "OneHotEncoder"):
            for attribute in node.attribute:
                if attribute.name == "zeros":
                    attribute.i = 1


def write_given(
    into: Path,
    path: Path,
    options: ImportOptions = ImportOptions(),
) -> None:
    """Write the given model as one file; the bytes of `path` themselves where nothing is bound, dropped or loaded.

    Equal bytes take no more room in a cache that holds the file already. Raises ModelError as an import does.
    """
    model = given_model(path, options) if options.given or side_files(path) else None
    if model is None:
        shutil.copyfile(path, into)
        return
    with into.open("wb") as opened:
        opened.writelines(serialise(model))
